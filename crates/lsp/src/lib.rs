//! The linter in an editor: findings and fixes as you type.
//!
//! One thread takes messages as they come, and answers the newest state of a text only: what was
//! typed while it looked is looked at next, not what was typed in between. The texts are those of
//! the editor, saved or not. Nothing is written to a file; fixes are offered, and the editor
//! makes them.

mod answer;
mod documents;
mod texts;
mod transport;

use answer::Answerer;
use antifreeze_check::settings::Selection;
use antifreeze_lint::here::Here;
use documents::Documents;
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response};
use lsp_types::notification::{
    DidChangeNotebookDocument, DidChangeTextDocument, DidCloseNotebookDocument,
    DidCloseTextDocument, DidOpenNotebookDocument, DidOpenTextDocument, DidSaveNotebookDocument,
    DidSaveTextDocument, Notification as _, PublishDiagnostics,
};
use lsp_types::request::{CodeActionRequest, Request as _};
use lsp_types::{
    CodeActionKind, CodeActionOptions, CodeActionProviderCapability, InitializeParams, Notebook,
    NotebookDocumentSyncOptions, NotebookSelector, OneOf, PositionEncodingKind,
    PublishDiagnosticsParams, SaveOptions, ServerCapabilities, TextDocumentSyncCapability,
    TextDocumentSyncKind, TextDocumentSyncOptions, TextDocumentSyncSaveOptions, Uri,
};
use serde::de::DeserializeOwned;
use std::path::Path;
use texts::Encoding;

/// What the server needs to know of the machine and the project.
pub trait Surroundings {
    fn here(&self) -> Here;
    /// The rules for a file, by the configuration nearest to it.
    fn selection(&self, file: &Path) -> Result<Selection, String>;
}

/// Serves an editor on standard input and output until it says goodbye.
pub fn serve(surroundings: &impl Surroundings) -> Result<(), String> {
    let (connection, threads) = transport::stdio();
    let served = serve_on(&connection, surroundings);
    drop(connection);
    // Standard input is still open when an editor died in mid-word; that is its own business.
    if served.is_ok() {
        return threads
            .join()
            .map_err(|error| format!("talking to the editor: {error}"));
    }
    served.map_err(|error| match threads.trouble() {
        Some(trouble) => format!("talking to the editor: {trouble}"),
        None => error,
    })
}

fn serve_on(connection: &Connection, surroundings: &impl Surroundings) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("talking to the editor: {error}");
    let (id, parameters) = connection
        .initialize_start()
        .map_err(|error| failed(&error))?;
    let encoding = encoding(&parameters);
    let hello = serde_json::json!({
        "capabilities": capabilities(encoding),
        "serverInfo": { "name": "antifreeze", "version": env!("CARGO_PKG_VERSION") },
    });
    connection
        .initialize_finish(id, hello)
        .map_err(|error| failed(&error))?;
    let mut server = Server {
        connection,
        documents: Documents::default(),
        answerer: Answerer {
            surroundings,
            encoding,
        },
        stale: Vec::new(),
    };
    server.run().map_err(|error| failed(&error))
}

/// Columns in bytes where the editor can count so, else as the protocol began: in the units of
/// UTF-16.
fn encoding(parameters: &serde_json::Value) -> Encoding {
    let offered = serde_json::from_value::<InitializeParams>(parameters.clone())
        .ok()
        .and_then(|parameters| parameters.capabilities.general)
        .and_then(|general| general.position_encodings)
        .unwrap_or_default();
    if offered.contains(&PositionEncodingKind::UTF8) {
        Encoding::Utf8
    } else {
        Encoding::Utf16
    }
}

fn capabilities(encoding: Encoding) -> ServerCapabilities {
    ServerCapabilities {
        position_encoding: Some(encoding.kind()),
        text_document_sync: Some(TextDocumentSyncCapability::Options(
            TextDocumentSyncOptions {
                open_close: Some(true),
                change: Some(TextDocumentSyncKind::INCREMENTAL),
                save: Some(TextDocumentSyncSaveOptions::SaveOptions(
                    SaveOptions::default(),
                )),
                ..TextDocumentSyncOptions::default()
            },
        )),
        notebook_document_sync: Some(OneOf::Left(NotebookDocumentSyncOptions {
            // Cells of all kinds, so that they are counted as the person counts them.
            notebook_selector: vec![NotebookSelector::ByNotebook {
                notebook: Notebook::String("jupyter-notebook".to_owned()),
                cells: None,
            }],
            save: Some(true),
        })),
        code_action_provider: Some(CodeActionProviderCapability::Options(CodeActionOptions {
            code_action_kinds: Some(vec![
                CodeActionKind::QUICKFIX,
                CodeActionKind::SOURCE_FIX_ALL,
            ]),
            ..CodeActionOptions::default()
        })),
        ..ServerCapabilities::default()
    }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

struct Server<'a, S> {
    connection: &'a Connection,
    documents: Documents,
    answerer: Answerer<'a, S>,
    /// Texts and notebooks that have changed since they were looked at.
    stale: Vec<Uri>,
}

impl<S: Surroundings> Server<'_, S> {
    fn run(&mut self) -> Result<(), Failure> {
        loop {
            // What was typed already is taken in before anything is looked at.
            let message = match self.connection.receiver.try_recv() {
                Ok(message) => message,
                Err(_) => match self.stale.pop() {
                    Some(uri) => {
                        self.tell(&uri)?;
                        continue;
                    }
                    None => match self.connection.receiver.recv() {
                        Ok(message) => message,
                        // The editor is gone.
                        Err(_) => return Ok(()),
                    },
                },
            };
            match message {
                Message::Request(request) => {
                    if self.connection.handle_shutdown(&request)? {
                        return Ok(());
                    }
                    let response = self.answer(request);
                    self.connection.sender.send(response.into())?;
                }
                Message::Notification(notification) => self.take_in(notification)?,
                Message::Response(_) => {}
            }
        }
    }

    fn take_in(&mut self, notification: Notification) -> Result<(), Failure> {
        match notification.method.as_str() {
            DidOpenTextDocument::METHOD => {
                if let Some(opened) = read::<DidOpenTextDocument>(notification) {
                    self.is_stale(opened.text_document.uri.clone());
                    self.documents.open(opened.text_document);
                }
            }
            DidChangeTextDocument::METHOD => {
                if let Some(changed) = read::<DidChangeTextDocument>(notification) {
                    let document = changed.text_document;
                    let encoding = self.answerer.encoding;
                    self.documents.texts.change(
                        &document.uri,
                        &changed.content_changes,
                        document.version,
                        encoding,
                    );
                    self.is_stale(document.uri);
                }
            }
            DidSaveTextDocument::METHOD => {
                // The configuration may be what was saved.
                if let Some(saved) = read::<DidSaveTextDocument>(notification) {
                    self.is_stale(saved.text_document.uri);
                }
            }
            DidCloseTextDocument::METHOD => {
                if let Some(closed) = read::<DidCloseTextDocument>(notification) {
                    let uri = closed.text_document.uri;
                    self.documents.texts.close(&uri);
                    self.forget(uri)?;
                }
            }
            DidOpenNotebookDocument::METHOD => {
                if let Some(opened) = read::<DidOpenNotebookDocument>(notification) {
                    self.is_stale(opened.notebook_document.uri.clone());
                    self.documents.open_notebook(opened);
                }
            }
            DidChangeNotebookDocument::METHOD => {
                if let Some(changed) = read::<DidChangeNotebookDocument>(notification)
                    && let Some(cells) = changed.change.cells
                {
                    let uri = changed.notebook_document.uri;
                    let encoding = self.answerer.encoding;
                    for gone in self.documents.change_notebook(&uri, cells, encoding) {
                        self.forget(gone)?;
                    }
                    self.is_stale(uri);
                }
            }
            DidSaveNotebookDocument::METHOD => {
                if let Some(saved) = read::<DidSaveNotebookDocument>(notification) {
                    self.is_stale(saved.notebook_document.uri);
                }
            }
            DidCloseNotebookDocument::METHOD => {
                if let Some(closed) = read::<DidCloseNotebookDocument>(notification) {
                    for gone in self.documents.close_notebook(closed) {
                        self.forget(gone)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn is_stale(&mut self, uri: Uri) {
        if !self.stale.contains(&uri) {
            self.stale.push(uri);
        }
    }

    /// Takes back what was said of a text that is no longer open.
    fn forget(&mut self, uri: Uri) -> Result<(), Failure> {
        self.stale.retain(|other| *other != uri);
        self.publish(PublishDiagnosticsParams::new(uri, Vec::new(), None))
    }

    /// Tells the editor what is found in a document now.
    fn tell(&self, uri: &Uri) -> Result<(), Failure> {
        if let Some(document) = self.documents.get(uri) {
            for told in self.answerer.diagnostics(&document) {
                self.publish(told)?;
            }
        }
        Ok(())
    }

    fn publish(&self, parameters: PublishDiagnosticsParams) -> Result<(), Failure> {
        let method = PublishDiagnostics::METHOD.to_owned();
        let message = Notification::new(method, parameters);
        Ok(self.connection.sender.send(message.into())?)
    }

    fn answer(&self, request: Request) -> Response {
        if request.method != CodeActionRequest::METHOD {
            let message = format!("`{}` is not served", request.method);
            return Response::new_err(request.id, ErrorCode::MethodNotFound as i32, message);
        }
        match serde_json::from_value(request.params) {
            Ok(asked) => {
                Response::new_ok(request.id, self.answerer.actions(&asked, &self.documents))
            }
            Err(error) => Response::new_err(
                request.id,
                ErrorCode::InvalidParams as i32,
                error.to_string(),
            ),
        }
    }
}

/// What a notification says; None when it is not what its name promises.
fn read<N>(notification: Notification) -> Option<N::Params>
where
    N: lsp_types::notification::Notification,
    N::Params: DeserializeOwned,
{
    serde_json::from_value(notification.params).ok()
}
