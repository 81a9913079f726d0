"""Pictures of the measurements: ratios to the peers with their bars, and growth of times with n. Requires matplotlib."""

from pathlib import Path

MET, MISSED, GREY = "#2a6fbb", "#d1601f", "#9a9a9a"
FEWEST, MOST = 6, 60  # bars of one picture


def draw(part: str, sections, folder: Path) -> list[tuple[str, Path]]:
    """Write the pictures of a part into a folder, and return their captions and paths."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "structarrays", "font.size": 9})
    folder.mkdir(parents=True, exist_ok=True)
    judged = [v for section in sections for v in section.verdicts if v.ratio is not None]
    grown = [case for section in sections for case in section.cases if "sizes" in case]
    drawn = []
    for name, caption, picture, data in (
        ("ratios", "Ratios to the references, and the bars", _ratios, judged),
        ("growth", "Growth with n", _growth, grown),
    ):
        if data and (data is grown or FEWEST <= len(data) <= MOST):
            figure, path = picture(plt, data), folder / f"{name}_{part}.svg"
            figure.savefig(path, metadata={"Date": None})
            plt.close(figure)
            drawn.append((caption, path))
    return drawn


def _ratios(plt, verdicts):
    """Draw one line for each bar: a dot at our ratio, a stroke at its limit."""
    from matplotlib import ticker

    count = len(verdicts)
    figure, axes = plt.subplots(figsize=(8.5, 0.9 + 0.2 * count), layout="constrained")
    places = range(count, 0, -1)
    axes.hlines(places, 1, [v.ratio for v in verdicts], color=GREY, linewidth=0.6)
    axes.scatter([v.limit for v in verdicts], places, marker="|", s=60, color="black", label="bar")
    for met, colour, label in ((True, MET, "met"), (False, MISSED, "missed")):
        chosen = [(v.ratio, y) for v, y in zip(verdicts, places, strict=True) if v.met is met]
        if chosen:
            axes.scatter(*zip(*chosen, strict=True), s=22, color=colour, label=label, zorder=3)
    axes.axvline(1, color=GREY, linewidth=0.8)
    axes.set(xscale="log", ylim=(0.2, count + 0.8), xlabel="our time over the reference's (left is faster)")
    axes.set_yticks(places, [v.case for v in verdicts], fontsize=7)
    axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(ticker.NullFormatter())
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, frameon=False)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return figure


def _growth(plt, cases):
    """Draw seconds over n on logarithmic axes; the dashed lines are proportional to n."""
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for i, case in enumerate(cases):
        label = case["case"].removeprefix("growth: ")
        axes.plot(case["sizes"], case["seconds"], marker="o", markersize=3, linewidth=1.2, label=label, color=f"C{i}")
    sizes = cases[0]["sizes"]
    for seconds in (1e-9, 1e-8, 1e-7):
        axes.plot(sizes, [seconds * n for n in sizes], "--", color=GREY, linewidth=0.6, zorder=0)
        axes.annotate(f"{seconds * 1e9:g} ns a row", (sizes[-1], seconds * sizes[-1]), fontsize=7, color="#666666")
    axes.set(xscale="log", yscale="log", xlabel="n", ylabel="seconds")
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
