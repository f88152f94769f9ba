// The belief viewer's drawings of worlds: one function for each kind of world, told apart in `beliefScenes`.
// Each builds its elements in a parent and returns draw(frame, colours), which draws one step and returns a sentence.
// A frame has `world`, `t`, `row(name)` of the step, `rowAt(name, t)`, and `whole(name)` of what has no time.
const beliefScenes = (function () {
  "use strict";

  function make(tag, parent, className, text) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    if (parent) parent.append(element);
    return element;
  }

  const percent = (p) => (Number.isFinite(p) ? `${Math.round(100 * p)}\u00a0%` : "–");
  const number = (value, digits = 2) => (Number.isFinite(value) ? value.toFixed(digits).replace("-", "−") : "–");

  function name(parent, kind, title, about) {
    make("span", parent, `viewer-swatch viewer-${kind}`);
    make("strong", parent, "", title);
    make("span", parent, "viewer-about", about);
  }

  // A panel with a title, a swatch of its colour and a canvas.
  function panel(parent, kind, title, about) {
    const figure = make("figure", parent, "viewer-panel");
    name(make("figcaption", figure, "viewer-title"), kind, title, about);
    const canvas = make("canvas", figure);
    canvas.setAttribute("role", "img");
    return { figure, canvas };
  }

  const BOTH = [["belief", "Belief", "from the history"], ["decoded", "Decoded", "from the memory"]];
  const bothPanels = (parent) => BOTH.map((about) => panel(parent, ...about));

  // A context whose unit is a CSS pixel, cleared, of the canvas's width and the given height.
  function surface(canvas, height) {
    const ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth;
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== w) canvas.width = w;
    if (canvas.height !== h) canvas.height = h;
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    return { context, width };
  }

  function withAlpha(context, alpha, draw) {
    context.globalAlpha = alpha;
    draw();
    context.globalAlpha = 1;
  }

  // The square root makes doubts of a few percent visible.
  const shade = (p) => Math.sqrt(Math.min(1, Math.max(0, p)));

  function box(context, x, y, width, height, radius) {
    context.beginPath();
    context.roundRect(x, y, width, height, Math.min(radius, width / 2, height / 2));
  }

  // The mark of what is true: dark on a light rim, so that it shows on any shade.
  function ring(context, colours, trace) {
    for (const [colour, width] of [[colours.surface, 5], [colours.ink, 2.25]]) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      trace();
      context.stroke();
    }
  }

  // ---- T-Maze: state 2 · cell + layout; cells 0 … L are the corridor, L + 1 and L + 2 the arms above and below.

  function mazeShape(length, width) {
    const wide = Math.min(30, (width - 4) / (length + 1));
    const high = Math.max(18, Math.min(22, wide));
    const gap = wide > 5 ? 1.5 : 0;
    const above = wide * length < 200 ? 18 : 0; // the titles stand in the row of the upper arm, where they have room
    const at = (cell) => ({
      x: 2 + wide * Math.min(cell, length),
      y: above + high * (cell <= length ? 1 : cell === length + 1 ? 0 : 2),
    });
    return { length, wide, high, gap, at, title: (above || high) - 6, height: above + 3 * high };
  }

  function drawCell(context, colours, shape, cell, p, colour) {
    const { x, y } = shape.at(cell);
    const [width, height] = [shape.wide - shape.gap, shape.high - 1.5];
    box(context, x, y, width, height, 3);
    context.fillStyle = colours.cell;
    context.fill();
    if (!(p > 0)) return;
    context.fillStyle = colour;
    withAlpha(context, shade(p), () => context.fill());
  }

  function drawTreasure(context, colours, shape, layout) {
    const { x, y } = shape.at(shape.length + 1 + layout);
    const [cx, cy, r] = [x + (shape.wide - shape.gap) / 2, y + shape.high / 2 - 0.75, shape.high * 0.36];
    context.beginPath();
    context.moveTo(cx, cy - r);
    context.lineTo(cx + r, cy);
    context.lineTo(cx, cy + r);
    context.lineTo(cx - r, cy);
    context.closePath();
    context.fillStyle = colours.treasure;
    context.fill();
  }

  function drawAgent(context, colours, shape, cell) {
    const { x, y } = shape.at(cell);
    const width = Math.max(shape.wide - shape.gap, 7);
    const left = x + (shape.wide - shape.gap - width) / 2;
    ring(context, colours, () => box(context, left - 0.5, y - 0.5, width + 1, shape.high - 0.5, 4));
  }

  function drawMazeTitle(context, colours, layout, share, isTrue, y) {
    const parts = [
      [`Treasure ${layout ? "down" : "up"}`, colours.soft, "500"],
      [percent(share), colours.ink, "700"],
    ];
    if (isTrue) parts.push(["● true maze", colours.ink, "500"]);
    let x = 2;
    for (const [text, colour, weight] of parts) {
      context.font = `${weight} 12px ${colours.font}`;
      context.fillStyle = colour;
      context.fillText(text, x, y);
      x += context.measureText(text).width + 8;
    }
  }

  function drawMazes(canvas, colours, colour, length, probabilities, state) {
    const shape = mazeShape(length, canvas.clientWidth);
    const between = 6;
    const { context } = surface(canvas, 2 * shape.height + between);
    const total = probabilities.reduce((sum, p) => sum + p, 0);
    const share = [0, 0];
    probabilities.forEach((p, index) => (share[index % 2] += p / total));
    for (const layout of [0, 1]) {
      context.save();
      context.translate(0, layout * (shape.height + between));
      for (let cell = 0; cell <= length + 2; cell++) {
        drawCell(context, colours, shape, cell, probabilities[2 * cell + layout], colour);
      }
      drawTreasure(context, colours, shape, layout);
      if (state % 2 === layout) drawAgent(context, colours, shape, state >> 1);
      drawMazeTitle(context, colours, layout, share[layout], state % 2 === layout, shape.title);
      context.restore();
    }
    const place = state >> 1 === length ? "the junction" : `cell ${state >> 1}`;
    canvas.setAttribute("aria-label", `Treasure up ${percent(share[0])}, down ${percent(share[1])}; true: ${place}`);
    return { side: share[state % 2], state: probabilities[state] / total };
  }

  function maze(parent, world) {
    parent.classList.toggle("viewer-side", world.length < 24);
    const [belief, decoded] = bothPanels(parent);
    return function draw(frame, colours) {
      const state = Math.round(frame.row("states")[0]);
      const draws = (panel, name) =>
        drawMazes(panel.canvas, colours, colours[name], world.length, frame.row(name), state);
      const known = draws(belief, "belief");
      const read = draws(decoded, "decoded");
      return (
        `The treasure’s true side: ${percent(known.side)} by the belief, ${percent(read.side)} by the memory. ` +
        `The true cell of the true maze: ${percent(known.state)} by the belief, ${percent(read.state)} by the memory.`
      );
    };
  }

  // ---- The mountain, and any cloud of particles in the plane.

  function image(width, height, paint) {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [width, height];
    const context = canvas.getContext("2d");
    const pixels = context.createImageData(width, height);
    for (let row = 0; row < height; row++) {
      for (let column = 0; column < width; column++) {
        pixels.data.set(paint(column, row), 4 * (row * width + column));
      }
    }
    context.putImageData(pixels, 0, 0);
    return canvas;
  }

  // Between the grid's points the altitude is linear; a line is drawn wherever a tenth of it begins.
  function terrain(altitude, colours) {
    const [side, size] = [altitude.shape[0], 320];
    const at = (column, row) => {
      const [x, y] = [(column / size) * (side - 1), (1 - row / size) * (side - 1)];
      const [i, j] = [Math.min(side - 2, Math.floor(x)), Math.min(side - 2, Math.floor(y))];
      const [u, v] = [x - i, y - j];
      const of = (a, b) => altitude.values[b * side + a];
      return (1 - v) * ((1 - u) * of(i, j) + u * of(i + 1, j)) + v * ((1 - u) * of(i, j + 1) + u * of(i + 1, j + 1));
    };
    const level = (h) => Math.floor(10 * h);
    const [low, high] = [altitude.low, altitude.high];
    return image(size, size, (column, row) => {
      const h = at(column, row);
      const line = level(h) !== level(at(column + 1, row)) || level(h) !== level(at(column, row + 1));
      const up = (h - low) / (high - low);
      const depth = colours.isDark ? 0.08 + 0.34 * up : 0.42 - 0.36 * up;
      return [...colours.terrain, Math.round(255 * (depth + (line ? 0.14 : 0)))];
    });
  }

  // Places in the plane as pixels of a square map.
  function mapped(bounds, size) {
    const [[x0, x1], [y0, y1]] = bounds;
    return (x, y) => [((x - x0) / (x1 - x0)) * size, (1 - (y - y0) / (y1 - y0)) * size];
  }

  function drawDots(context, colour, place, xs, ys) {
    context.fillStyle = colour;
    withAlpha(context, 0.6, () => {
      xs.forEach((x, index) => {
        context.beginPath();
        context.arc(...place(x, ys[index]), 2.4, 0, 2 * Math.PI);
        context.fill();
      });
    });
  }

  // Each cell's probability as a bump; one cell that is sure would be drawn in the full colour.
  function drawHeat(context, colours, frame, bounds, size) {
    const points = 56;
    const total = new Float32Array(points * points);
    const [xs, ys] = [frame.whole("cell_x").values, frame.whole("cell_y").values];
    const bump = (centre, [low, high]) =>
      Float32Array.from({ length: points }, (_, i) => {
        const away = (low + ((i + 0.5) / points) * (high - low) - centre) / (0.045 * (high - low));
        return Math.exp(-0.5 * away * away);
      });
    frame.row("decoded").forEach((p, cell) => {
      if (!(p > 0.001)) return;
      const [along, up] = [bump(xs[cell], bounds[0]), bump(ys[cell], bounds[1])];
      for (let j = 0; j < points; j++) {
        for (let i = 0; i < points; i++) total[j * points + i] += p * along[i] * up[j];
      }
    });
    const heat = image(points, points, (column, row) => [
      ...colours.decodedRgb,
      Math.round(240 * shade(total[(points - 1 - row) * points + column])),
    ]);
    context.drawImage(heat, 0, 0, size, size);
  }

  function drawTrail(context, colours, place, frame) {
    context.strokeStyle = colours.ink;
    context.lineWidth = 1.25;
    context.lineJoin = "round";
    context.beginPath();
    for (let t = 0; t <= frame.t; t++) {
      const [x, y] = frame.rowAt("states", t);
      context.lineTo(...place(x, y));
    }
    withAlpha(context, 0.45, () => context.stroke());
  }

  function drawArrow(context, [x, y], [dx, dy], length) {
    const size = Math.hypot(dx, dy) || 1;
    const [ux, uy] = [dx / size, -dy / size];
    const [tipX, tipY] = [x + ux * length, y + uy * length];
    context.beginPath();
    context.moveTo(x + ux * 7, y + uy * 7);
    context.lineTo(tipX, tipY);
    for (const side of [-1, 1]) {
      context.moveTo(tipX - 5 * ux + side * 4 * uy, tipY - 5 * uy - side * 4 * ux);
      context.lineTo(tipX, tipY);
    }
  }

  function drawTruth(context, colours, point, facing) {
    context.lineCap = "round";
    if (facing) ring(context, colours, () => drawArrow(context, point, facing, 22));
    ring(context, colours, () => {
      context.beginPath();
      context.arc(...point, 5.5, 0, 2 * Math.PI);
    });
  }

  function drawGoal(context, colours, place, [x, y, radius]) {
    const [cx, cy] = place(x, y);
    context.beginPath();
    context.arc(cx, cy, place(x + radius, y)[0] - cx, 0, 2 * Math.PI);
    context.strokeStyle = context.fillStyle = colours.treasure;
    context.lineWidth = 2.5;
    context.stroke();
    withAlpha(context, 0.25, () => context.fill());
  }

  const mean = (values, weights) => {
    let [sum, total] = [0, 0];
    values.forEach((value, index) => {
      sum += value * (weights ? weights[index] : 1);
      total += weights ? weights[index] : 1;
    });
    return sum / total;
  };

  function centres(frame) {
    const weights = frame.row("decoded");
    return {
      known: [mean(frame.row("x")), mean(frame.row("y"))],
      read: [mean(frame.whole("cell_x").values, weights), mean(frame.whole("cell_y").values, weights)],
    };
  }

  const around = ([x, y]) => `around (${number(x)}, ${number(y)})`;

  function drawMaps(panels, frame, colours, bounds, under, truth) {
    panels.forEach(({ canvas }, index) => {
      const size = canvas.clientWidth;
      const { context } = surface(canvas, size);
      const place = mapped(bounds, size);
      context.save();
      box(context, 0, 0, size, size, 8);
      context.clip();
      under(context, place, size);
      if (index === 0) drawDots(context, colours.belief, place, frame.row("x"), frame.row("y"));
      else drawHeat(context, colours, frame, bounds, size);
      truth(context, place);
      context.restore();
    });
    const found = centres(frame);
    panels[0].canvas.setAttribute("aria-label", `Particles of the belief ${around(found.known)}`);
    panels[1].canvas.setAttribute("aria-label", `Decoded belief ${around(found.read)}`);
    return found;
  }

  // How likely each orientation is, as four bars below a map.
  function compass(figure, world) {
    const row = make("div", figure, "viewer-compass");
    make("span", row, "viewer-about", "faces");
    const bars = world.moves.map((moves) => {
      const bar = make("span", row, "viewer-facing", arrowOf(moves[0]));
      return { bar, label: make("b", bar, "", "") };
    });
    return (shares) =>
      bars.forEach(({ bar, label }, facing) => {
        bar.style.setProperty("--share", shares[facing].toFixed(3));
        label.textContent = percent(shares[facing]);
      });
  }

  function arrowOf([dx, dy]) {
    if (Math.abs(dx) > Math.abs(dy)) return dx > 0 ? "→" : "←";
    return dy > 0 ? "↑" : "↓";
  }

  function facings(frame) {
    const known = [0, 1, 2, 3].map((facing) => mean(frame.row("facing").map((f) => +(Math.round(f) === facing))));
    const [of, weights] = [frame.whole("cell_facing").values, frame.row("decoded")];
    const read = [0, 1, 2, 3].map((facing) => mean(weights.map((_, cell) => of[4 * cell + facing]), weights));
    return [known, read];
  }

  function hike(parent, world) {
    parent.classList.add("viewer-maps");
    const panels = bothPanels(parent);
    const compasses = world.varying ? panels.map(({ figure }) => compass(figure, world)) : [];
    const reach = world.varying ? 1.1 : 1.05; // hikers stop at the edge, which is at 1, and may face outwards
    const bounds = [[-reach, reach], [-reach, reach]];
    let ground = null;
    return function draw(frame, colours) {
      if (!ground || ground.colours !== colours) ground = { colours, image: terrain(world.altitude, colours) };
      const [x, y, facing] = frame.row("states");
      const under = (context, place, size) => {
        const [rim] = place(-1, 1);
        const inside = [rim, rim, size - 2 * rim, size - 2 * rim];
        context.fillStyle = colours.cell;
        context.fillRect(0, 0, size, size);
        context.clearRect(...inside);
        context.drawImage(ground.image, ...inside);
        drawGoal(context, colours, place, world.goal);
      };
      const found = drawMaps(panels, frame, colours, bounds, under, (context, place) => {
        drawTrail(context, colours, place, frame);
        drawTruth(context, colours, place(x, y), world.varying ? world.moves[Math.round(facing)][0] : null);
      });
      if (world.varying) facings(frame).forEach((shares, index) => compasses[index](shares));
      const away = ([a, b]) => number(Math.hypot(a - x, b - y));
      return (
        `The hiker stands at (${number(x)}, ${number(y)}). The belief’s mean is ${away(found.known)} away, ` +
        `that of the decoded belief ${away(found.read)}.`
      );
    };
  }

  function boundsOf(frame, name) {
    const [inner, outer] = [frame.whole(name), frame.whole(`cell_${name}`)];
    const [low, high] = [Math.min(inner.low, outer.low), Math.max(inner.high, outer.high)];
    const rim = 0.05 * (high - low) || 1;
    return [low - rim, high + rim];
  }

  const drawLines = beliefLine({ surface, number, mean, boundsOf });

  function cloud(parent) {
    parent.classList.add("viewer-maps");
    const panels = bothPanels(parent);
    return function draw(frame, colours) {
      if (!frame.has("y")) return drawLines(panels, frame, colours);
      const bounds = ["x", "y"].map((name) => boundsOf(frame, name));
      const under = (context, place, size) => {
        context.fillStyle = colours.cell;
        context.fillRect(0, 0, size, size);
      };
      const found = drawMaps(panels, frame, colours, bounds, under, () => {});
      return `The first two numbers of the state: ${around(found.known)} by the belief, ${around(found.read)} by the memory.`;
    };
  }

  // ---- Any other: bars.

  // The true state and the likeliest ones of either, in the order of the table; all where they are few.
  function shown(belief, decoded, state) {
    const score = (index) => (index === state ? 2 : Math.max(belief[index], decoded[index]));
    const order = Array.from(belief.keys()).sort((a, b) => score(b) - score(a));
    return order.slice(0, 12).sort((a, b) => a - b);
  }

  function table(parent, world) {
    const box = make("div", parent, "viewer-panel");
    const title = make("div", box, "viewer-title");
    BOTH.forEach((about) => name(title, ...about));
    const list = make("div", box, "viewer-bars");
    return function draw(frame) {
      const [belief, decoded] = [frame.row("belief"), frame.row("decoded")];
      const state = Math.round(frame.row("states")[0]);
      list.textContent = "";
      for (const index of shown(belief, decoded, state)) {
        const line = make("div", list, index === state ? "viewer-bar viewer-true" : "viewer-bar");
        make("span", line, "viewer-name", world.states[index]);
        for (const [kind, p] of [["belief", belief[index]], ["decoded", decoded[index]]]) {
          const track = make("span", line, `viewer-share viewer-${kind}`);
          track.style.setProperty("--share", p.toFixed(3));
          make("span", line, "viewer-number", percent(p));
        }
      }
      return (
        `The true state, ${world.states[state]}: ${percent(belief[state])} by the belief, ` +
        `${percent(decoded[state])} by the memory.`
      );
    };
  }

  // Variables that a Kalman filter follows: mean and two standard deviations, and the true value as a mark.
  function normal(parent) {
    const list = make("div", parent, "viewer-panel viewer-normal");
    return function draw(frame) {
      const [numbers, all] = [frame.row("normal"), frame.whole("normal")];
      const at = (value) => `${(100 * (value - all.low)) / (all.high - all.low || 1)}%`;
      list.textContent = "";
      make("span", list, "viewer-about", "Kalman filter: mean ± 2 standard deviations; the mark is the truth");
      for (let index = 0; index < numbers.length; index += 3) {
        const [centre, std, truth] = numbers.subarray(index, index + 3);
        const line = make("div", list, "viewer-track");
        const [from, to] = [Math.max(all.low, centre - 2 * std), Math.min(all.high, centre + 2 * std)];
        const band = make("span", line, "viewer-band");
        band.style.left = at(from);
        band.style.right = `calc(100% - ${at(to)})`;
        make("span", line, "viewer-mean").style.left = at(centre);
        make("span", line, "viewer-mark").style.left = at(truth);
      }
      return "";
    };
  }

  return { make, surface, image, arrowOf, number, kinds: { maze, hike, cloud, table, normal } };
})();
