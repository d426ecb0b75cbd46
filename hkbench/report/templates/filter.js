"use strict";
// Hides the samples whose "problem status kind" the expression does not match, and problems without any left.
(() => {
  const box = document.getElementById("filter");
  const said = document.getElementById("filtered");
  const problems = [...document.querySelectorAll("section.problem")].map((section) => ({
    section,
    name: section.dataset.name,
    row: document.getElementById(`row-${section.id}`),
    cells: [...section.querySelectorAll(".strip a")],
    samples: [...section.querySelectorAll(".sample")],
  }));
  const apply = () => {
    let wanted;
    try {
      wanted = new RegExp(box.value, "i");
    } catch (error) {
      box.setAttribute("aria-invalid", "true");
      said.textContent = error.message;
      return;
    }
    box.removeAttribute("aria-invalid");
    let shown = 0, all = 0, left = 0;
    for (const { section, name, row, cells, samples } of problems) {
      let here = 0;
      samples.forEach((sample, i) => {
        const match = wanted.test(`${name} ${sample.dataset.words}`);
        sample.hidden = cells[i].hidden = !match;
        here += match;
      });
      const keep = here > 0 || (samples.length === 0 && wanted.test(name));
      section.hidden = row.hidden = !keep;
      shown += here;
      all += samples.length;
      left += keep;
    }
    said.textContent = box.value ? `${shown} of ${all} samples, ${left} of ${problems.length} problems` : "";
  };
  document.getElementById("filters").hidden = false;
  let timer;
  box.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(apply, 120);
  });
  if (box.value) apply(); // a browser that goes back keeps it
})();
