"""One performance of the demo, from the empty directory to the refused receipt: its exit code."""

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
    """Show everything; 0 when all that was promised was seen."""
    voice: Voice = JsonVoice() if as_json else PlainVoice() if plain or not on_terminal() else TerminalVoice()
    with tempfile.TemporaryDirectory(prefix="redkey-demo-") as place, Stage(Path(place)) as stage:
        voice.begin(agents)
        with stage.serve() as rk, voice:
            show = Show(stage, agents, seed, voice.tell, voice.draw)
            try:
                show.run(rk)
            except Unreachable:
                # If the server is gone, its last words say more than that it does not answer.
                stage.check()
                raise
            stage.stop_agents()
            scores = history(rk, show.scene)
            evidence = export(rk, show.scene.races[0], Path(place))
        # What follows is proven without it.
        stage.stop_server()
        tasks = len(show.scene.steps)
        voice.scores(scores, tasks)
        good, bad = check(evidence, evidence.receipt.name), check(evidence, evidence.tampered.name)
        voice.proof(good, bad)
        # One winner for each task, and one more for each lease that ran out.
        one_winner = sum(one.won for one in scores) == tasks + len(show.scene.lost_leases)
        return 0 if one_winner and good.code == 0 and bad.code == 1 else 1


def history(rk: RedKey, scene: Scene) -> list[Score]:
    """What every agent's claim history says: read from the ledger, not from what was drawn."""
    scores = []
    for agent in scene.agents.values():
        counts = Counter(one.status for one in rk.agents.claim_history(agent.agent_id))
        scores.append(Score(agent.role, agent.name, counts["claimed"], counts["missed"], agent.killed))
    return scores
