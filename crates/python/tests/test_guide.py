"""The programs of the guide print what it says below them."""

import pathlib
import re
import subprocess
import sys
import unittest

from folder import InFolder

GUIDE = pathlib.Path(__file__).resolve().parents[3] / "docs/guides/python.md"
PROGRAM = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)


class Guide(InFolder):
    def test_each_program_prints_what_stands_below_it(self):
        programs = PROGRAM.findall(GUIDE.read_text())
        self.assertGreater(len(programs), 1)
        for program, printed in programs:
            ran = subprocess.run(
                [sys.executable, "-c", program],
                cwd=self.folder,
                capture_output=True,
                text=True,
            )
            self.assertEqual((ran.stdout, ran.stderr), (printed, ""))


if __name__ == "__main__":
    unittest.main()
