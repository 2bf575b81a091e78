"""The page of results: medians, spreads, shares within a round, aims reached and missed, and plots that are SVG."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from bench import Figure, Point, Run, results
from bench.clocks import interpreter
from bench.plots import PLOTS, Axis, draw


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, dict[str, object]]:
    run = Run()
    for value, beside in ((100, 50), (300, 100), (200, 400)):
        run.figures.append(
            Figure("queues", "cycles", value, "/s", beside, aim=150, share_aim=2.5, fsync_ms=value / 100)
        )
    run.figures.append(Figure("queues", "start", 1.5, "s", aim=2, least=True))
    run.points.append(Point("throughput", "RedKey", 1, 10))
    run.points.append(Point("throughput", "RedKey", 8, 100))
    run.notes.append(("queues", "DBOS is missing here: no package"))
    for name in ("PAGE", "DATA", "PICTURES"):
        monkeypatch.setattr(results, name, tmp_path / name.lower())
    monkeypatch.setattr(results, "ROOT", tmp_path)
    results.write(run, {"queues": "Queues"}, 3, 0.5, 60)
    return (tmp_path / "page").read_text(), json.loads((tmp_path / "data").read_text())


def test_a_figure_is_the_median_of_its_rounds_and_its_share_is_taken_within_a_round(
    written: tuple[str, dict[str, object]],
) -> None:
    page, data = written
    assert "| cycles | 200/s | 100 to 300 | 2.00 (0.50 to 3.00) | 2.00 ms | 150/s, share 2.5 | **missed** |" in page
    first = data["figures"][0]  # type: ignore[index]
    assert (first["median"], first["low"], first["high"], first["share"]) == (200, 100, 300, 2)


def test_the_build_of_the_interpreter_is_written_where_shares_are(written: tuple[str, dict[str, object]]) -> None:
    page, _ = written
    assert f"Interpreter: {interpreter()}." in page.partition("## queues")[2]


def test_less_may_be_better_and_what_is_missing_is_told(written: tuple[str, dict[str, object]]) -> None:
    page, _ = written
    assert "| start | 1.5 s | one round |  |  | 2 s | reached |" in page
    assert "- DBOS is missing here: no package" in page
    assert "plots/throughput.svg" in page


def test_a_section_that_is_measured_alone_replaces_itself_and_nothing_else(
    written: tuple[str, dict[str, object]], tmp_path: Path
) -> None:
    run = Run()
    run.figures.append(Figure("a2a", "sends", 80, "/s", 100, share_aim=0.6))
    results.write_sections(run, {"a2a": "A2A"}, 0.5)
    run = Run()
    run.figures.append(Figure("a2a", "sends", 70, "/s", 100, share_aim=0.6))
    results.write_sections(run, {"a2a": "A2A"}, 0.25)
    page, data = (tmp_path / "page").read_text(), json.loads((tmp_path / "data").read_text())
    before, _, own = page.partition("## a2a\n")
    assert before.startswith("# Results")
    own, _, rest = own.partition("## queues\n")
    assert "| sends | 70/s | one round | 0.70 |  | share 0.6 | reached |" in own
    assert own.count("Measured alone on") == 1
    assert "load 0.2 before the run" in own
    assert page.replace(f"## a2a\n{own}", "") == written[0]
    assert rest.rstrip().endswith("throughput.svg)")
    assert [(one["section"], one["what"]) for one in data["figures"]] == [
        ("a2a", "sends"),
        ("queues", "cycles"),
        ("queues", "start"),
    ]


def test_a_plot_is_svg_with_a_line_and_a_name_for_each_thing() -> None:
    points = [
        Point("depth", line, x, y) for line in ("a<b", "c") for x, y in ((1000, 5.0), (1000, 7.0), (100_000, 6.0))
    ]
    tree = ElementTree.fromstring(draw(PLOTS["depth"], points))  # noqa: S314 - our own text
    kinds = [element.tag.rpartition("}")[2] for element in tree]
    assert kinds.count("polyline") == 2
    assert kinds.count("circle") == 4
    assert "a<b" in [element.text for element in tree]


def test_large_numbers_are_written_out_and_names_of_axes_begin_inside() -> None:
    points = [Point("depth", "a", x, y) for x, y in ((1000, 0.5), (1_000_000, 2500.0))]
    tree = ElementTree.fromstring(draw(PLOTS["depth"], points))  # noqa: S314 - our own text
    texts = {element.text: element.attrib for element in tree if element.text}
    assert {"1,000", "1,000,000", "2,000"} <= texts.keys()
    name = texts[PLOTS["depth"].y]
    assert (name["x"], name.get("text-anchor", "start")) == ("8", "start")


@pytest.mark.parametrize(("values", "log"), [([1, 64], True), ([0, 3], False), ([7, 7], True), ([0, 5], True)])
def test_an_axis_keeps_its_values_inside_and_has_few_ticks(values: list[float], log: bool) -> None:
    axis = Axis(values, 0, 100, log)
    assert all(0 <= axis.place(value) <= 100.001 for value in values)
    assert 1 <= len(axis.ticks()) <= 8


# What `make bench` wrote last. A run on a busy machine could not hold these bars, so they are bars of the measurement.


def bus_figures() -> dict[str, Any]:
    """The measured figures of the bus by name, each of them as the page shows it."""
    figures = [one for one in json.loads(results.DATA.read_text())["figures"] if one["section"] == "bus"]
    page = results.PAGE.read_text().partition("## bus")[2].partition("\n## ")[0]
    assert all(f"| {one['what'].strip()} | {one['median']:,.0f}/s |" in page for one in figures)
    return {one["what"].strip(): one for one in figures}


def test_agent_list_reached_half_of_a_bare_echo_when_it_was_measured_last() -> None:
    found = bus_figures()
    listing, echo = found["the bus, agent.list"], found["bare asyncio newline-JSON echo, the yardstick"]
    assert listing["rounds"] == echo["rounds"]
    assert listing["share"] >= 0.5


def test_the_bus_confirmed_5000_durable_messages_a_second_when_it_was_measured_last() -> None:
    assert bus_figures()["the bus, message.send"]["median"] >= 5_000


def test_redis_is_measured_beside_the_bus() -> None:
    """Each figure of Redis has its share of the yardstick of the same rounds."""
    found = bus_figures()
    redis = [found["Redis, PING"], found["Redis, pub/sub, not durable"]]
    bus = [found["the bus, agent.list"], found["the bus, durable and confirmed"]]
    assert all(one["median"] > 0 and one["share"] > 0 for one in (*redis, *bus))
    assert len({one["rounds"] for one in (*redis, *bus)}) == 1
