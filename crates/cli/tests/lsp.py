"""An editor, as far as the language server can tell: pygls opens a file, looks, types, and fixes.

lsp.py ANTIFREEZE FOLDER: says what it saw as JSON on the last line.
"""

import asyncio
import json
import pathlib
import sys

from lsprotocol import types
from pygls.lsp.client import BaseLanguageClient

LEAK = """\
import torch
from torch import nn

def train(model: nn.Module, loader, optimizer, criterion):
    total = 0.0  # 😀
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss
    return total
"""


# The cells of a notebook: text, what is made, and what is done with it.
CELLS = [
    (types.NotebookCellKind.Markup, "markdown", "# Training"),
    (types.NotebookCellKind.Code, "python", "import torch\nfrom torch import nn\nmodel = nn.Linear(8, 2)\n"
     "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\ncriterion = nn.CrossEntropyLoss()"),
    (types.NotebookCellKind.Code, "python", "%%time\ntotal = 0.0\nfor x, y in loader:\n"
     "    optimizer.zero_grad()\n    loss = criterion(model(x), y)\n    loss.backward()\n"
     "    optimizer.step()\n    total += loss"),
]


class Editor(BaseLanguageClient):
    def __init__(self):
        super().__init__("an-editor", "1")
        self.published = asyncio.Queue()

        @self.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def publish(told):
            self.published.put_nowait(told)

    async def told(self):
        return await asyncio.wait_for(self.published.get(), 30)


def changed(text, edits):
    """The text with an editor's edits made; columns count UTF-16 units."""
    lines = text.splitlines(keepends=True)
    for edit in sorted(edits, key=lambda e: (e.range.start.line, e.range.start.character), reverse=True):
        assert edit.range.start.line == edit.range.end.line
        line = lines[edit.range.start.line].encode("utf-16-le")
        start, end = 2 * edit.range.start.character, 2 * edit.range.end.character
        line = line[:start] + edit.new_text.encode("utf-16-le") + line[end:]
        lines[edit.range.start.line] = line.decode("utf-16-le")
    return "".join(lines)


async def use_notebook(editor, uri):
    """Opens it, fixes what is found, puts a cell above it, and closes it."""
    cells = [types.NotebookCell(kind, f"{uri}#{number}") for number, (kind, _, _) in enumerate(CELLS)]
    texts = [
        types.TextDocumentItem(f"{uri}#{number}", language, 1, text)
        for number, (_, language, text) in enumerate(CELLS)
    ]
    document = types.NotebookDocument(uri, "jupyter-notebook", 1, cells)
    editor.notebook_document_did_open(types.DidOpenNotebookDocumentParams(document, texts))
    told = {published.uri: published for published in [await editor.told() for _ in cells]}
    found = told[cells[2].document].diagnostics[0]
    actions = await editor.text_document_code_action_async(
        types.CodeActionParams(
            types.TextDocumentIdentifier(cells[2].document), found.range, types.CodeActionContext([found])
        )
    )
    [edit] = actions[0].edit.changes[cells[2].document]
    [all_fixes] = actions[1].edit.changes[cells[2].document]

    typed = types.NotebookDocumentCellContentChanges(
        types.VersionedTextDocumentIdentifier(2, cells[2].document),
        [types.TextDocumentContentChangePartial(edit.range, edit.new_text)],
    )
    above = types.TextDocumentItem(f"{uri}#new", "python", 1, "history = []")
    structure = types.NotebookDocumentCellChangeStructure(
        types.NotebookCellArrayChange(1, 0, [types.NotebookCell(types.NotebookCellKind.Code, above.uri)]),
        [above],
    )
    change = types.NotebookDocumentCellChanges(structure, text_content=[typed])
    editor.notebook_document_did_change(
        types.DidChangeNotebookDocumentParams(
            types.VersionedNotebookDocumentIdentifier(2, uri), types.NotebookDocumentChangeEvent(cells=change)
        )
    )
    after = [await editor.told() for _ in range(len(cells) + 1)]
    documents = [types.TextDocumentIdentifier(published.uri) for published in after]
    editor.notebook_document_did_close(
        types.DidCloseNotebookDocumentParams(types.NotebookDocumentIdentifier(uri), documents)
    )
    closed = [await editor.told() for _ in documents]
    return {
        "found": {told.partition("#")[2]: [[d.code, d.range.start.line] for d in published.diagnostics]
                  for told, published in told.items()},
        "message": found.message,
        "kinds": [action.kind for action in actions],
        "fixed": changed(CELLS[2][2], [edit]) == all_fixes.new_text,
        "after_fix": [[published.uri.partition("#")[2], len(published.diagnostics)] for published in after],
        "closed": sum(len(published.diagnostics) for published in closed),
    }


async def use(program, folder):
    editor = Editor()
    await editor.start_io(program, "check", "--lsp", cwd=folder)
    root = pathlib.Path(folder).as_uri()
    hello = await editor.initialize_async(
        types.InitializeParams(capabilities=types.ClientCapabilities(), root_uri=root)
    )
    editor.initialized(types.InitializedParams())
    uri = root + "/not%20saved.py"
    document = types.TextDocumentItem(uri, "python", 1, LEAK)
    editor.text_document_did_open(types.DidOpenTextDocumentParams(document))
    first = await editor.told()

    found = first.diagnostics[0]
    actions = await editor.text_document_code_action_async(
        types.CodeActionParams(
            types.TextDocumentIdentifier(uri), found.range, types.CodeActionContext([found])
        )
    )
    quick = next(action for action in actions if action.kind == types.CodeActionKind.QuickFix)
    edits = quick.edit.changes[uri]
    fixed = changed(LEAK, edits)

    # As it is typed: one change for each edit, where it is.
    changes = [types.TextDocumentContentChangePartial(edit.range, edit.new_text) for edit in reversed(edits)]
    version = types.VersionedTextDocumentIdentifier(2, uri)
    editor.text_document_did_change(types.DidChangeTextDocumentParams(version, changes))
    second = await editor.told()

    # In the middle of a word there is a mistake, and nobody minds.
    broken = [types.TextDocumentContentChangeWholeDocument(LEAK.replace("total += loss", "total += (loss"))]
    version = types.VersionedTextDocumentIdentifier(3, uri)
    editor.text_document_did_change(types.DidChangeTextDocumentParams(version, broken))
    third = await editor.told()

    editor.text_document_did_close(
        types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri))
    )
    last = await editor.told()
    notebook = await use_notebook(editor, root + "/train.ipynb")
    await editor.shutdown_async(None)
    editor.exit(None)
    status = await asyncio.wait_for(editor._server.wait(), 30)
    return {
        "server": hello.server_info.name,
        "found": [[d.code, d.range.start.line, d.range.start.character, d.source] for d in first.diagnostics],
        "titles": [[action.title, action.kind] for action in actions],
        "fixed": fixed,
        "after_fix": [[second.version, [d.code for d in second.diagnostics]]],
        "while_broken": [d.code for d in third.diagnostics],
        "closed": len(last.diagnostics),
        "notebook": notebook,
        "status": status,
    }


print(json.dumps(asyncio.run(use(*sys.argv[1:]))))
