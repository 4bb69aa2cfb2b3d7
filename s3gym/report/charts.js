// Draws each figure of the page when it comes near the window, and all of them for printing.
(() => {
  "use strict";
  // A layer with rows but without a value, such as intervals that none has, is left out: an axis cannot span nothing.
  const isDrawable = (spec) => (layer) => {
    const rows = spec.datasets[(layer.data ?? spec.data).name] ?? [];
    const fields = ["x", "x2", "y", "y2"].map((channel) => layer.encoding?.[channel]?.field).filter(Boolean);
    return !rows.length || fields.every((field) => rows.some((row) => row[field] != null));
  };
  const draw = (figure) => {
    if (figure.dataset.state) return;
    figure.dataset.state = "drawing";
    const plot = figure.querySelector(".plot");
    const spec = JSON.parse(figure.querySelector("script").textContent);
    if (spec.layer) spec.layer = spec.layer.filter(isDrawable(spec));
    // ast: vega's own interpreter instead of code made from text, so that the page can forbid eval.
    vegaEmbed(plot, spec, { renderer: "svg", ast: true, actions: false }).then(
      () => { figure.dataset.state = "drawn"; },
      (error) => {
        figure.dataset.state = "failed";
        plot.textContent = `This chart could not be drawn: ${error.message}`;
        console.error(error);
      },
    );
  };
  const figures = [...document.querySelectorAll("figure.chart")];
  const near = new IntersectionObserver(
    (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => draw(entry.target)),
    { rootMargin: "800px" },
  );
  figures.forEach((figure) => near.observe(figure));
  window.addEventListener("beforeprint", () => figures.forEach(draw));
})();
