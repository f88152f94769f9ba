// The belief viewer: beliefViewer(element, data) shows stored episodes step by step within `element`.
// `data` is what beliefscope.report.viewer.viewer_data gives; viewer_scene.js, which draws the worlds, stands before.
// The element tells where it is: data-step, and data-playing, "true" or "false".
const beliefViewer = (function () {
  "use strict";
  const { make, surface, image, arrowOf, number, kinds } = beliefScenes;
  const STEPS_PER_SECOND = 8;
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");

  // ---- Data

  async function unpacked({ top, root, low, high, shape, data }) {
    const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const buffer = await new Response(stream).arrayBuffer();
    const codes = top < 255 ? new Uint8Array(buffer) : new Uint16Array(buffer);
    const values = Float32Array.from(codes, (code) => {
      const number = code > top ? NaN : low + (code / top) * (high - low);
      return root ? number * number : number;
    });
    return { values, shape, low, high, width: shape.slice(1).reduce((a, b) => a * b, 1) };
  }

  const unpackedOnce = new WeakMap();

  function arraysOf(holder, arrays) {
    if (!unpackedOnce.has(holder)) {
      const names = Object.keys(arrays);
      const all = Promise.all(names.map((name) => unpacked(arrays[name])));
      unpackedOnce.set(holder, all.then((found) => Object.fromEntries(names.map((name, i) => [name, found[i]]))));
    }
    return unpackedOnce.get(holder);
  }

  // What scenes read: rows of this episode's steps.
  function frameOf(world, arrays, trace, episode) {
    const start = episode === 0 ? 0 : trace.lengths[0];
    const rowAt = (name, t) => {
      const { values, width } = arrays[name];
      return values.subarray((start + t) * width, (start + t + 1) * width);
    };
    return {
      world,
      t: 0,
      length: trace.lengths[episode],
      has: (name) => name in arrays,
      whole: (name) => arrays[name],
      rowAt,
      row(name) {
        return rowAt(name, this.t);
      },
    };
  }

  // ---- Words

  function actionNames({ world }, facing) {
    if (world.kind === "maze") return ["→ Right", "↑ Up", "← Left", "↓ Down"];
    if (world.kind !== "hike") return world.actions;
    const words = world.varying ? ["Forward", "Left", "Backward", "Right"] : null;
    const onMap = { "→": "East", "↑": "North", "←": "West", "↓": "South" };
    return world.moves[facing].map((move, action) => `${arrowOf(move)} ${words ? words[action] : onMap[arrowOf(move)]}`);
  }

  function observationOf(frame) {
    const seen = Array.from(frame.row("observations"));
    if (frame.world.kind === "hike") return `altitude ${number(seen[0])}`;
    const names = frame.world.kind === "maze" ? ["Up", "Down", "Corridor", "Junction"] : frame.world.observations;
    if (!names) return seen.slice(0, 4).map((value) => number(value)).join(", ");
    const index = seen.findIndex((value) => value > 0.5);
    return index < 0 ? "nothing yet" : names[index];
  }

  const EPISODES = { maze: ["Treasure up", "Treasure down"] };
  const OTHER_EPISODES = ["First", "Second"];
  function checkpointName(episode) {
    if (typeof episode === "string") return episode;
    return episode === 0 ? "Untrained" : `${episode.toLocaleString("en")} episodes`;
  }

  const BELIEF = "Belief: what can be known from all that was seen and done. ";
  const DECODED =
    "Decoded: what an MLP reads off the agent’s memory alone; where it matches the belief, the memory holds it. ";
  const MARKS = {
    maze: "Ring: where the agent is. Gold: the treasure.",
    hike: "Ring: where the hiker is. Gold: the goal.",
    table: "Dot: the true state.",
  };

  // ---- Colours, read from the page's style sheet whenever its theme changes

  function readColours(element) {
    const probe = make("span", element);
    const pen = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
    const context = pen.getContext("2d", { willReadFrequently: true });
    const css = (name) => {
      probe.style.color = `var(--viewer-${name})`;
      return getComputedStyle(probe).color;
    };
    const rgb = (name) => {
      context.fillStyle = css(name);
      context.fillRect(0, 0, 1, 1);
      return Array.from(context.getImageData(0, 0, 1, 1).data.slice(0, 3));
    };
    const names = ["ink", "soft", "surface", "cell", "belief", "decoded", "treasure"];
    const colours = Object.fromEntries(names.map((name) => [name, css(name)]));
    colours.decodedRgb = rgb("decoded");
    colours.terrain = rgb("terrain");
    colours.minus = rgb("minus");
    colours.plus = rgb("plus");
    colours.isDark = rgb("surface")[1] < 128;
    colours.font = getComputedStyle(element).fontFamily;
    probe.remove();
    return colours;
  }

  function onThemeChange(react) {
    new MutationObserver(react).observe(document.documentElement, { attributeFilter: ["data-theme", "class"] });
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", react);
  }

  // ---- Parts of the page

  function labelled(parent, text, tag) {
    const label = make("label", parent, "viewer-choice");
    make("span", label, "", text);
    return make(tag, label);
  }

  function fill(select, options, chosen) {
    select.textContent = "";
    options.forEach((text, index) => (make("option", select, "", text).value = index));
    select.value = chosen;
    select.disabled = options.length < 2;
  }

  // Drawn, because letters such as ▶ turn into coloured pictures on some phones.
  const ICONS = {
    back: "M12 4v16L4 12zM14 4h3v16h-3z",
    forward: "M12 4v16l8-8zM7 4h3v16H7z",
    play: "M7 4v16l13-8z",
    pause: "M6 4h4v16H6zM14 4h4v16h-4z",
  };

  function setIcon(button, name) {
    const [svg, path] = ["svg", "path"].map((tag) => document.createElementNS("http://www.w3.org/2000/svg", tag));
    svg.setAttribute("viewBox", "0 0 24 24");
    svg.setAttribute("aria-hidden", "true");
    path.setAttribute("d", ICONS[name]);
    svg.append(path);
    button.replaceChildren(svg);
  }

  function button(parent, label, icon, act) {
    const made = make("button", parent, "viewer-button");
    setIcon(made, icon);
    made.type = "button";
    made.setAttribute("aria-label", label);
    made.title = label;
    made.addEventListener("click", act);
    return made;
  }

  function buildReadout(parent) {
    const list = make("dl", parent, "viewer-readout");
    return Object.fromEntries(
      ["Step", "Sees", "Does", "Reward", "So far"].map((name) => {
        const pair = make("div", list);
        make("dt", pair, "", name);
        return [name, make("dd", pair)];
      }),
    );
  }

  function showReadout(readout, frame, actions) {
    const action = Math.round(frame.row("actions")[0]);
    const [gained] = frame.row("returns");
    const before = frame.t > 0 ? frame.rowAt("returns", frame.t - 1)[0] : 0;
    readout.Step.textContent = `${frame.t + 1} of ${frame.length}`;
    readout.Sees.textContent = observationOf(frame);
    readout.Does.textContent = actions[action];
    readout.Reward.textContent = number(gained - before);
    readout["So far"].textContent = number(gained);
  }

  // A dot on a common scale for each action: values need no zero, and the greatest is what the agent does.
  function showValues(list, frame, actions) {
    const { low, high } = frame.whole("values");
    const [values, best] = [frame.row("values"), Math.round(frame.row("actions")[0])];
    list.textContent = "";
    list.parentElement.hidden = !values.some(Number.isFinite); // agents of other libraries have none that are known
    actions.forEach((name, action) => {
      const line = make("div", list, action === best ? "viewer-value viewer-best" : "viewer-value");
      make("span", line, "viewer-name", name);
      const track = make("span", line, "viewer-track");
      make("span", track, "viewer-dot").style.left = `${(100 * (values[action] - low)) / (high - low || 1)}%`;
      make("span", line, "viewer-number", number(values[action]));
    });
  }

  // ---- Memory: a row for each unit, a column for each step; what is still to come is faint.

  function memoryImage(frame, colours) {
    const { low, high, width } = frame.whole("memory");
    const most = Math.max(Math.abs(low), Math.abs(high)) || 1;
    return image(frame.length, width, (t, unit) => {
      const value = frame.rowAt("memory", t)[unit];
      const alpha = Number.isFinite(value) ? Math.abs(value) / most : 0;
      return [...(value < 0 ? colours.minus : colours.plus), Math.round(255 * alpha)];
    });
  }

  function drawMemory(canvas, frame, colours, picture) {
    const height = Math.max(96, Math.min(176, 2.5 * picture.height));
    const { context, width } = surface(canvas, height);
    const step = width / frame.length;
    context.fillStyle = colours.surface;
    context.fillRect(0, 0, width, height);
    context.imageSmoothingEnabled = false;
    context.drawImage(picture, 0, 0, width, height);
    context.globalAlpha = 0.68;
    context.fillRect((frame.t + 1) * step, 0, width, height);
    context.globalAlpha = 1;
    const wide = Math.max(step, 3);
    const left = Math.min(width - wide - 1, Math.max(1, (frame.t + 0.5) * step - wide / 2));
    context.strokeStyle = colours.ink;
    context.lineWidth = 2;
    context.strokeRect(left, 1, wide, height - 2);
  }

  // ---- The viewer

  function build(element) {
    element.classList.add("viewer");
    element.tabIndex = 0;
    element.setAttribute("role", "group");
    element.setAttribute("aria-label", "Belief viewer");
    const choices = make("div", element, "viewer-choices");
    const parts = {};
    for (const name of ["Environment", "Cell", "Training", "Episode"]) {
      parts[name] = labelled(choices, name, "select");
    }
    parts.transport = make("div", element, "viewer-transport");
    parts.readout = buildReadout(element);
    parts.stage = make("div", element, "viewer-stage");
    parts.says = make("p", element, "viewer-says");
    const below = make("div", element, "viewer-below");
    const values = section(below, "Q-values", "of each action; the greatest is done");
    parts.values = make("div", values, "viewer-values");
    const memory = section(below, "Memory", "a row for each unit, a column for each step");
    parts.memory = make("canvas", memory, "viewer-memory");
    parts.memory.setAttribute("role", "img");
    parts.memory.setAttribute("aria-label", "Memory of the agent over time");
    scale(memory);
    parts.irrelevant = section(element, "Irrelevant variables", "which the agent sees but need not know");
    parts.legend = make("p", element, "viewer-legend");
    return parts;
  }

  function section(parent, title, about) {
    const box = make("section", parent, "viewer-panel");
    const head = make("div", box, "viewer-title");
    make("strong", head, "", title);
    make("span", head, "viewer-about", about);
    return box;
  }

  function scale(parent) {
    const row = make("div", parent, "viewer-scale");
    make("span", row, "", "negative");
    make("span", row, "viewer-ramp");
    make("span", row, "", "positive");
  }

  function beliefViewer(element, data) {
    const parts = build(element);
    const at = { environment: 0, cell: 0, training: 0, episode: 0 };
    let colours = readColours(element);
    let shown = null; // frame, draw, drawIrrelevant, picture
    let timer = 0;
    let request = 0;

    const environment = () => data.environments[at.environment];
    const cellOf = (trace) => JSON.stringify([trace.cell, trace.seed]);
    const cells = () => [...new Set(environment().traces.map(cellOf))];
    const tracesOfCell = () =>
      environment()
        .traces.filter((trace) => cellOf(trace) === cells()[at.cell])
        .sort((a, b) => a.episode - b.episode);

    function offerChoices() {
      const several = new Set(environment().traces.map((trace) => trace.seed)).size > 1;
      const names = cells().map((key) => JSON.parse(key)).map(([cell, seed]) => (several ? `${cell}, seed ${seed}` : cell));
      const traces = tracesOfCell();
      const { world } = environment();
      fill(parts.Environment, data.environments.map(({ name }) => name), at.environment);
      fill(parts.Cell, names, at.cell);
      fill(parts.Training, traces.map(({ episode }) => checkpointName(episode)), at.training);
      fill(parts.Episode, EPISODES[world.kind] || OTHER_EPISODES, at.episode);
    }

    async function open() {
      pause();
      at.cell = Math.min(at.cell, cells().length - 1);
      at.training = Math.min(at.training, tracesOfCell().length - 1);
      offerChoices();
      const trace = tracesOfCell()[at.training];
      const { world } = environment();
      const mine = ++request;
      const arrays = await arraysOf(trace, trace.arrays);
      const ground = world.altitude ? (await arraysOf(world, { altitude: world.altitude })).altitude : null;
      if (mine !== request) return; // another choice was made meanwhile
      const frame = frameOf(ground ? { ...world, altitude: ground } : world, arrays, trace, at.episode);
      show(frame);
    }

    function show(frame) {
      parts.stage.className = "viewer-stage";
      element.classList.toggle("viewer-beside", frame.world.kind !== "maze");
      parts.stage.textContent = "";
      parts.irrelevant.querySelector(".viewer-normal")?.remove();
      const irrelevant = frame.has("normal") && frame.world.kind !== "normal";
      parts.irrelevant.hidden = !irrelevant;
      const drawScene = kinds[frame.world.kind](parts.stage, frame.world);
      const drawIrrelevant = irrelevant ? kinds.normal(parts.irrelevant, frame.world) : () => "";
      parts.legend.textContent = BELIEF + (frame.has("decoded") ? DECODED : "") + (MARKS[frame.world.kind] || "");
      shown = { frame, drawScene, drawIrrelevant, picture: null };
      slider.max = Math.max(0, frame.length - 1);
      element.classList.toggle("viewer-empty", frame.length === 0);
      goTo(Number(element.dataset.step) || 0);
    }

    function goTo(t) {
      if (!shown) return;
      const { frame } = shown;
      frame.t = Math.max(0, Math.min(frame.length - 1, t)); // an empty episode stays at 0
      element.dataset.step = frame.t;
      slider.value = frame.t;
      slider.setAttribute("aria-valuetext", `step ${frame.t + 1} of ${frame.length}`);
      draw();
    }

    function draw() {
      if (!shown || element.clientWidth === 0) return;
      const { frame, drawScene, drawIrrelevant } = shown;
      if (frame.length === 0) {
        parts.says.textContent = "This episode ended before the agent could act.";
        return;
      }
      if (!shown.picture) shown.picture = memoryImage(frame, colours);
      const facing = frame.world.kind === "hike" ? Math.round(frame.row("states")[2]) : 0;
      const actions = actionNames(frame, facing);
      parts.says.textContent = drawScene(frame, colours);
      drawIrrelevant(frame, colours);
      showReadout(parts.readout, frame, actions);
      showValues(parts.values, frame, actions);
      drawMemory(parts.memory, frame, colours, shown.picture);
    }

    function recolour() {
      colours = readColours(element);
      if (shown) shown.picture = null;
      draw();
    }

    // ---- Time

    function setPlaying(playing) {
      element.dataset.playing = playing;
      setIcon(playButton, playing ? "pause" : "play");
      playButton.setAttribute("aria-label", playing ? "Pause" : "Play");
      playButton.title = playing ? "Pause (space)" : "Play (space)";
      parts.says.setAttribute("aria-live", playing ? "off" : "polite");
    }

    function pause() {
      clearTimeout(timer);
      setPlaying(false);
    }

    function play() {
      if (!shown || shown.frame.length === 0) return;
      if (shown.frame.t >= shown.frame.length - 1) goTo(0);
      setPlaying(true);
      tick();
    }

    function tick() {
      const rate = STEPS_PER_SECOND * Number(speed.value) * (calm.matches ? 0.25 : 1);
      timer = setTimeout(() => {
        goTo(shown.frame.t + 1);
        if (shown.frame.t >= shown.frame.length - 1) pause();
        else tick();
      }, 1000 / rate);
    }

    const toggle = () => (element.dataset.playing === "true" ? pause() : play());
    const stepBy = (steps) => {
      pause();
      goTo((shown ? shown.frame.t : 0) + steps);
    };

    // ---- Controls

    button(parts.transport, "Step back", "back", () => stepBy(-1));
    const playButton = button(parts.transport, "Play", "play", toggle);
    playButton.classList.add("viewer-play");
    button(parts.transport, "Step forward", "forward", () => stepBy(1));
    const slider = labelled(parts.transport, "Time", "input");
    slider.type = "range";
    slider.min = slider.value = 0;
    slider.addEventListener("input", () => {
      pause();
      goTo(Number(slider.value));
    });
    slider.parentElement.classList.add("viewer-time");
    const speed = labelled(parts.transport, "Speed", "select");
    for (const factor of [0.25, 0.5, 1, 2, 4]) make("option", speed, "", `${factor} ×`).value = factor;
    speed.value = 1;

    function choose(select, name) {
      select.addEventListener("change", () => {
        at[name] = Number(select.value);
        if (name === "environment") Object.assign(at, { cell: 0, training: Infinity, episode: 0 });
        open();
      });
    }
    choose(parts.Environment, "environment");
    choose(parts.Cell, "cell");
    choose(parts.Training, "training");
    choose(parts.Episode, "episode");

    element.addEventListener("keydown", (event) => {
      const own = event.target.tagName; // selects and buttons keep their keys
      if (own === "SELECT" || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === " " && own === "BUTTON") return;
      const acts = {
        " ": toggle,
        ArrowLeft: () => stepBy(-1),
        ArrowRight: () => stepBy(1),
        Home: () => stepBy(-Infinity),
        End: () => stepBy(Infinity),
      };
      if (!acts[event.key]) return;
      event.preventDefault();
      acts[event.key]();
    });

    function seek(event) {
      if (!shown || event.buttons === 0) return;
      const { left, width } = parts.memory.getBoundingClientRect();
      pause();
      goTo(Math.floor(((event.clientX - left) / width) * shown.frame.length));
    }
    parts.memory.addEventListener("pointerdown", seek);
    parts.memory.addEventListener("pointermove", seek);

    new ResizeObserver(() => requestAnimationFrame(draw)).observe(element);
    onThemeChange(recolour);
    setPlaying(false);
    element.dataset.step = 0;
    if (data.environments.length === 0) {
      element.textContent = "No traces are stored.";
      return;
    }
    at.training = Infinity; // the last checkpoint
    open();
  }

  return beliefViewer;
})();
