"use strict";
// The filter, the sorting of the table, and a button that copies code. The page is whole without them.
(() => {
  const box = document.getElementById("filter");
  const said = document.getElementById("filtered");
  const problems = [...document.querySelectorAll("section.problem")].map((section) => ({
    section,
    name: `${section.dataset.name} ${section.dataset.words}`,
    row: document.getElementById(`row-${section.id}`),
    cells: [...section.querySelectorAll(".strip a")],
    samples: [...section.querySelectorAll(".sample")],
  }));

  // Hides the samples whose "problem outcome kind language" the expression does not match, and problems without any
  // left. One that says how a problem ended ("^\S+ faster") is held against the problem alone.
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
    const whole = box.value.startsWith("^");
    for (const { section, name, row, cells, samples } of problems) {
      let here = 0;
      const kept = whole && wanted.test(row.dataset.words);
      samples.forEach((sample, i) => {
        const match = whole ? kept : wanted.test(`${section.dataset.name} ${sample.dataset.words}`);
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

  for (const link of document.querySelectorAll("[data-filter]")) {
    link.addEventListener("click", () => {
      box.value = box.value === link.dataset.filter ? "" : link.dataset.filter;
      apply();
    });
  }

  const value = (row, column, kind) => {
    const cell = row.cells[column];
    if (kind === "text") return cell.textContent.trim();
    return cell.dataset.value === "" ? null : Number(cell.dataset.value);
  };
  for (const head of document.querySelectorAll("#problem-table th[data-sort]")) {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const kind = head.dataset.sort;
      const down = head.getAttribute("aria-sort") ? head.getAttribute("aria-sort") === "ascending" : kind === "number";
      for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const body = head.closest("table").tBodies[0];
      const compare = (a, b) => {
        const [x, y] = [a, b].map((row) => value(row, head.cellIndex, kind));
        if (x === null || y === null) return (x === null) - (y === null); // what is not known comes last either way
        const order = kind === "number" ? x - y : x.localeCompare(y, "en", { numeric: true });
        return down ? -order : order;
      };
      body.append(...[...body.rows].sort(compare));
    });
  }

  for (const code of document.querySelectorAll("pre.code, pre.prompt")) {
    const button = document.createElement("button");
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code); // a browser that forbids it to a page from the disk
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    const holder = document.createElement("div");
    holder.className = "copyable";
    code.before(holder);
    holder.append(code, button);
  }
})();
