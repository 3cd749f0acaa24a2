"""`WorkerGroup`: the workers of one process, one for each resource of stream tables."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.worker.loop import Worker


class WorkerGroup:
    """Runs workers beside one another, until they are stopped together."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        """
        Raises:
            InvalidDefinition: Two of them have one name below one root.
        """
        self.workers = list(workers)
        places = Counter((each.driven.logs.root, each.driven.name) for each in self.workers)
        for (root, name), count in places.items():
            if count > 1:
                raise InvalidDefinition(
                    f'{count} code locations have the resource "{name}" below one root',
                    where=root,
                    why="of two workers with one name below a root, one stands by",
                    fix="give each call of build_definitions another name",
                )

    def stop(self) -> None:
        """As `Worker.stop`, for all."""
        for each in self.workers:
            each.stop()

    def run(self) -> bool:
        """Work until stopped, or until one of them ends. Returns whether every refresh had ended by
        then."""
        if len(self.workers) == 1:
            return self.workers[0].run()
        whole: dict[int, bool] = {}

        def run(number: int, worker: Worker) -> None:
            try:
                whole[number] = worker.run()
            finally:
                self.stop()

        threads = [
            threading.Thread(target=run, args=each, name=f"worker {each[1].driven.name}")
            for each in enumerate(self.workers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return len(whole) == len(self.workers) and all(whole.values())

    def health(self) -> dict[str, Any]:
        """That of the only worker, or of all."""
        if len(self.workers) == 1:
            return self.workers[0].health()
        found = [
            {"name": each.driven.name, "root": each.driven.logs.root, **each.health()}
            for each in self.workers
        ]
        return {"healthy": all(each["healthy"] for each in found), "workers": found}
