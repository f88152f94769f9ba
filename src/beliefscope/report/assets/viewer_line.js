// The belief viewer's drawing of states that are one number: how likely each stretch of the number line is.
// beliefLine(tools) takes what viewer_scene.js has for all drawings, and gives the function that draws one step.
const beliefLine = function (tools) {
  "use strict";
  const { surface, number, mean, boundsOf } = tools;
  const STRETCHES = 40;

  function histogram(values, weights, [low, high]) {
    const shares = new Float32Array(STRETCHES);
    const total = weights ? weights.reduce((sum, p) => sum + p, 0) : values.length;
    values.forEach((value, index) => {
      const at = Math.floor((STRETCHES * (value - low)) / (high - low));
      shares[Math.min(STRETCHES - 1, Math.max(0, at))] += (weights ? weights[index] : 1) / total;
    });
    return shares;
  }

  function drawLine(canvas, colours, colour, shares, [low, high], most) {
    const height = 150;
    const { context, width } = surface(canvas, height + 18);
    context.fillStyle = colours.cell;
    context.fillRect(0, 0, width, height);
    context.fillStyle = colour;
    shares.forEach((p, index) => {
      const tall = (height - 8) * (p / most);
      context.fillRect((index * width) / STRETCHES, height - tall, width / STRETCHES - 1, tall);
    });
    context.fillStyle = colours.soft;
    context.font = `12px ${colours.font}`;
    context.textBaseline = "top";
    context.fillText(number(low), 0, height + 4);
    context.fillText(number(high), width - context.measureText(number(high)).width, height + 4);
  }

  return function drawLines(panels, frame, colours) {
    const bounds = boundsOf(frame, "x");
    const weights = frame.row("decoded");
    const cells = frame.whole("cell_x").values;
    const both = [histogram(frame.row("x"), null, bounds), histogram(cells, weights, bounds)];
    const means = [mean(frame.row("x")), mean(cells, weights)].map((value) => `around ${number(value)}`);
    const most = Math.max(...both.flatMap((shares) => Array.from(shares)));
    panels.forEach(({ canvas }, index) => {
      drawLine(canvas, colours, index ? colours.decoded : colours.belief, both[index], bounds, most);
      canvas.setAttribute("aria-label", `${index ? "Decoded belief" : "Particles of the belief"} ${means[index]}`);
    });
    return `The state: ${means[0]} by the belief, ${means[1]} by the memory.`;
  };
};
