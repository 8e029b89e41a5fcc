import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from harness import result_log, table


class Table(unittest.TestCase):
    def test_the_tables_replace_the_text_between_their_marks(self):
        before = "# Figures\n\n<!-- lab -->\nfigures of last year\n<!-- end of lab -->\n\nrest\n"
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "RESULTS.md")
            with open(path, "w") as file:
                file.write(before)
            table.write_tables(path, result_log.read_results())
            with open(path) as file:
                after = file.read()
        self.assertIn("| leak |", after)
        self.assertNotIn("last year", after)
        self.assertTrue(after.startswith("# Figures\n\n<!-- lab -->\n"))
        self.assertTrue(after.endswith("<!-- end of lab -->\n\nrest\n"))


if __name__ == "__main__":
    unittest.main()
