// The page around the charts: it draws them when they come into view, in the colours of the theme; switches layers of
// curves on and off; sorts tables; and starts the belief viewer.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const drawn = new Map(); // by id, what a chart shows

  function colour(name) {
    return getComputedStyle(root).getPropertyValue(name).trim();
  }

  function themed(chart) {
    const ink = colour("--ink"), soft = colour("--ink-soft"), line = colour("--line"), surface = colour("--surface");
    const lines = { gridcolor: line, linecolor: line, zeroline: false, zerolinecolor: soft };
    const axis = { ...lines, automargin: true, tickfont: { color: soft } };
    const layout = structuredClone(chart.layout);
    for (const name of ["xaxis", "yaxis"]) layout[name] = { ...axis, ...layout[name] };
    for (const shape of layout.shapes || []) shape.line.color = ink;
    for (const label of layout.annotations || []) label.font.color = ink;
    return {
      ...layout,
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: ink },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: 8, r: 18, t: 8, b: 8 },
      hoverlabel: { bgcolor: surface, bordercolor: line, font: { color: ink } },
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", itemsizing: "trace", itemwidth: 40, font: { size: 12.5 } },
    };
  }

  async function draw(chart) {
    const element = document.getElementById(chart.id);
    const config = { responsive: true, displaylogo: false, displayModeBar: false };
    await Plotly.newPlot(element, chart.traces, themed(chart), config);
    drawn.set(chart.id, chart);
    element.dataset.drawn = "true";
  }

  // One after another, so that the first is seen before the last is drawn.
  function drawInView() {
    let queue = Promise.resolve();
    const pause = () => new Promise((done) => setTimeout(done));
    const byId = new Map(data.charts.map((chart) => [chart.id, chart]));
    const observer = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        observer.unobserve(entry.target);
        queue = queue.then(() => draw(byId.get(entry.target.id))).catch(console.error).then(pause);
      }
    }, { rootMargin: "400px" });
    for (const id of byId.keys()) observer.observe(document.getElementById(id));
  }

  // Paper has no scrolling: what was not yet in view is drawn, and what is folded opens. All charts take their width on paper.
  function drawForPrint() {
    for (const details of document.querySelectorAll("details")) details.open = true;
    for (const chart of data.charts) {
      if (drawn.has(chart.id)) Plotly.Plots.resize(document.getElementById(chart.id));
      else draw(chart).catch(console.error);
    }
  }

  // A box shows or hides all traces of its kind in the charts of its section.
  function switchLayer(box) {
    const section = box.closest("section");
    for (const chart of data.charts) {
      const element = document.getElementById(chart.id);
      if (!section.contains(element)) continue;
      const places = chart.traces.flatMap((trace, place) => (trace.meta.kind === box.dataset.kind ? [place] : []));
      for (const place of places) chart.traces[place].visible = box.checked;
      if (places.length && drawn.has(chart.id)) Plotly.restyle(element, { visible: box.checked }, places);
    }
  }

  function redrawAll() {
    for (const [id, chart] of drawn) Plotly.relayout(document.getElementById(id), themed(chart));
  }

  function startTheme() {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    document.getElementById("theme").addEventListener("click", () => {
      const now = root.dataset.theme || (dark.matches ? "dark" : "light");
      root.dataset.theme = now === "dark" ? "light" : "dark";
      redrawAll();
    });
    dark.addEventListener("change", redrawAll);
  }

  function sortBy(table, column, ascending) {
    const value = (row) => {
      const cell = row.cells[column];
      return "value" in cell.dataset ? (cell.dataset.value === "" ? null : Number(cell.dataset.value)) : cell.textContent.trim();
    };
    const compare = (a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === null || y === null) return (x === null) - (y === null); // what is missing comes last either way
      const order = typeof x === "number" ? x - y : x.localeCompare(y, "en", { numeric: true });
      return ascending ? order : -order;
    };
    table.tBodies[0].append(...[...table.tBodies[0].rows].sort(compare));
  }

  function makeSortable(table) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
      const ascending = head.getAttribute("aria-sort") !== "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      sortBy(table, column, ascending);
    }));
  }

  startTheme();
  document.querySelectorAll("table.sortable").forEach(makeSortable);
  document.querySelectorAll(".layers input").forEach((box) => box.addEventListener("change", () => switchLayer(box)));
  drawInView();
  addEventListener("beforeprint", drawForPrint);
  const place = document.getElementById("belief-viewer");
  if (place) beliefViewer(place, data.viewer);
})();
