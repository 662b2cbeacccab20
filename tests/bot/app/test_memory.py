from __future__ import annotations

import os
import subprocess
import sys

import pytest

# Eight threads each fill some pictures' worth of memory at once and let go of it, with a little that stays above it.
WORK = """
import asyncio, threading
from bot.app.memory import pictures_given_back

def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024

async def main():
    async with pictures_given_back(every=0.2):
        barrier, left = threading.Barrier(8), []
        def work():
            grown = bytearray()
            for _ in range(100):
                grown += b"\\xff" * 100_000
            left.append(bytearray(b"x" * 2000))
            barrier.wait()
        before = resident()
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: await asyncio.to_thread(thread.join)
        await asyncio.sleep(1)
        print(resident() - before)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux's C library keeps memory")
def test_what_threads_let_go_of_goes_back_to_the_system() -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    done = subprocess.run([sys.executable, "-c", WORK], env=env, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 20
