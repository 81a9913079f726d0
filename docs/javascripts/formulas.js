/* MathJax renders the formulas of docstrings, which `pymdownx.arithmatex` marks. Without a network they stay in TeX. */
window.MathJax = {
  tex: { inlineMath: [["\\(", "\\)"]] },
  options: { ignoreHtmlClass: ".*|", processHtmlClass: "arithmatex" },
};
