"""One performance of the demo, from the empty directory to the refused receipt, and its exit code."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

from redkey.cli.demo.proof import check, export
from redkey.cli.demo.scene import Scene
from redkey.cli.demo.show import Show
from redkey.cli.demo.stage import Stage
from redkey.cli.demo.voices import JsonVoice, PlainVoice, Score, TerminalVoice, Voice
from redkey.cli.screen import on_terminal
from redkey.client import RedKey
from redkey.errors import Unreachable


def perform(agents: int, seed: int, *, plain: bool, as_json: bool) -> int:
    """Run the whole demo; return 0 if everything happened as announced."""
    voice: Voice = JsonVoice() if as_json else PlainVoice() if plain or not on_terminal() else TerminalVoice()
    with tempfile.TemporaryDirectory(prefix="redkey-demo-") as place, Stage(Path(place)) as stage:
        voice.begin(agents)
        with stage.serve() as rk, voice:
            show = Show(stage, agents, seed, voice.tell, voice.draw)
            try:
                show.run(rk)
            except Unreachable:
                # If the server has stopped, its last output says more than a connection error.
                stage.check()
                raise
            stage.stop_agents()
            scores = history(rk, show.scene)
            evidence = export(rk, show.scene.races[0], Path(place))
        # The rest is proven without the server.
        stage.stop_server()
        tasks = len(show.scene.steps)
        voice.scores(scores, tasks)
        good, bad = check(evidence, evidence.receipt.name), check(evidence, evidence.tampered.name)
        voice.proof(good, bad)
        # One winner for each task, and one more for each lease that ran out.
        one_winner = sum(one.won for one in scores) == tasks + len(show.scene.lost_leases)
        return 0 if one_winner and good.code == 0 and bad.code == 1 else 1


def history(rk: RedKey, scene: Scene) -> list[Score]:
    """Return every agent's claim history, read from the ledger and not from the drawn scene."""
    scores = []
    for agent in scene.agents.values():
        counts = Counter(one.status for one in rk.agents.claim_history(agent.agent_id))
        scores.append(Score(agent.role, agent.name, counts["claimed"], counts["missed"], agent.killed))
    return scores
