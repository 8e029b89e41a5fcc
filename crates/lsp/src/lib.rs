//! A language server: findings and fixes while you type.
//!
//! One thread receives all messages and answers only the newest state of a text. The texts are
//! those in the editor, saved or not. The server writes no files; it offers fixes, and the editor
//! applies them.

mod diagnostics;
mod documents;
mod open_texts;
mod transport;

use antifreeze_check::settings::RuleSelection;
use antifreeze_lint::target_machine::TargetMachine;
use diagnostics::DiagnosticsProvider;
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
use open_texts::Encoding;
use serde::de::DeserializeOwned;
use std::path::Path;

/// The machine and the project that the server checks for.
pub trait Project {
    fn target_machine(&self) -> TargetMachine;
    /// Returns the rules for a file, from the nearest configuration, or `None` if that is invalid.
    fn rule_selection(&self, file: &Path) -> Option<RuleSelection>;
}

/// Serves an editor on standard input and output until it shuts down.
pub fn serve(project: &impl Project) -> Result<(), ServerError> {
    let (connection, threads) = transport::connect_stdio();
    let served = serve_on(&connection, project);
    drop(connection);
    // After an error, standard input may still be open, so joining would block.
    if served.is_ok() {
        threads.join().map_err(ServerError::new)?;
    }
    served
}

fn serve_on(connection: &Connection, project: &impl Project) -> Result<(), ServerError> {
    let (id, parameters) = connection.initialize_start().map_err(ServerError::new)?;
    let encoding = negotiate_encoding(&parameters);
    let hello = serde_json::json!({
        "capabilities": capabilities(encoding),
        "serverInfo": { "name": "antifreeze", "version": env!("CARGO_PKG_VERSION") },
    });
    connection
        .initialize_finish(id, hello)
        .map_err(ServerError::new)?;
    let mut server = Server {
        connection,
        documents: Documents::default(),
        provider: DiagnosticsProvider { project, encoding },
        stale: Vec::new(),
    };
    server.run().map_err(ServerError)
}

/// Columns count bytes if the editor supports that, otherwise UTF-16 units, the protocol's default.
fn negotiate_encoding(parameters: &serde_json::Value) -> Encoding {
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
            // All cells, so that they are numbered as in the editor.
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

/// Why the connection to the editor failed.
#[derive(Debug)]
pub struct ServerError(Failure);

impl ServerError {
    fn new(error: impl Into<Failure>) -> ServerError {
        ServerError(error.into())
    }
}

impl std::fmt::Display for ServerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "language server: {}", self.0)
    }
}

impl std::error::Error for ServerError {}

struct Server<'a, S> {
    connection: &'a Connection,
    documents: Documents,
    provider: DiagnosticsProvider<'a, S>,
    /// The changed texts and notebooks that are not checked yet.
    stale: Vec<Uri>,
}

impl<S: Project> Server<'_, S> {
    fn run(&mut self) -> Result<(), Failure> {
        loop {
            // All pending changes are applied before anything is checked.
            let message = match self.connection.receiver.try_recv() {
                Ok(message) => message,
                Err(_) => match self.stale.pop() {
                    Some(uri) => {
                        self.publish_document(&uri)?;
                        continue;
                    }
                    None => match self.connection.receiver.recv() {
                        Ok(message) => message,
                        // The editor has exited.
                        Err(_) => return Ok(()),
                    },
                },
            };
            match message {
                Message::Request(request) => {
                    if self.connection.handle_shutdown(&request)? {
                        return Ok(());
                    }
                    let response = self.handle_request(request);
                    self.connection.sender.send(response.into())?;
                }
                Message::Notification(notification) => self.handle_notification(notification)?,
                Message::Response(_) => {}
            }
        }
    }

    fn handle_notification(&mut self, notification: Notification) -> Result<(), Failure> {
        match notification.method.as_str() {
            DidOpenTextDocument::METHOD => {
                if let Some(opened) = parse_params::<DidOpenTextDocument>(notification) {
                    self.mark_stale(opened.text_document.uri.clone());
                    self.documents.open(opened.text_document);
                }
            }
            DidChangeTextDocument::METHOD => {
                if let Some(changed) = parse_params::<DidChangeTextDocument>(notification) {
                    let document = changed.text_document;
                    let encoding = self.provider.encoding;
                    self.documents.texts.change(
                        &document.uri,
                        &changed.content_changes,
                        document.version,
                        encoding,
                    );
                    self.mark_stale(document.uri);
                }
            }
            DidSaveTextDocument::METHOD => {
                // The saved file may be the configuration.
                if let Some(saved) = parse_params::<DidSaveTextDocument>(notification) {
                    self.mark_stale(saved.text_document.uri);
                }
            }
            DidCloseTextDocument::METHOD => {
                if let Some(closed) = parse_params::<DidCloseTextDocument>(notification) {
                    let uri = closed.text_document.uri;
                    self.documents.texts.close(&uri);
                    self.clear_diagnostics(uri)?;
                }
            }
            DidOpenNotebookDocument::METHOD => {
                if let Some(opened) = parse_params::<DidOpenNotebookDocument>(notification) {
                    self.mark_stale(opened.notebook_document.uri.clone());
                    self.documents.open_notebook(opened);
                }
            }
            DidChangeNotebookDocument::METHOD => {
                if let Some(changed) = parse_params::<DidChangeNotebookDocument>(notification)
                    && let Some(cells) = changed.change.cells
                {
                    let uri = changed.notebook_document.uri;
                    let encoding = self.provider.encoding;
                    for gone in self.documents.change_notebook(&uri, cells, encoding) {
                        self.clear_diagnostics(gone)?;
                    }
                    self.mark_stale(uri);
                }
            }
            DidSaveNotebookDocument::METHOD => {
                if let Some(saved) = parse_params::<DidSaveNotebookDocument>(notification) {
                    self.mark_stale(saved.notebook_document.uri);
                }
            }
            DidCloseNotebookDocument::METHOD => {
                if let Some(closed) = parse_params::<DidCloseNotebookDocument>(notification) {
                    for gone in self.documents.close_notebook(closed) {
                        self.clear_diagnostics(gone)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn mark_stale(&mut self, uri: Uri) {
        if !self.stale.contains(&uri) {
            self.stale.push(uri);
        }
    }

    /// Removes the diagnostics of a text that is no longer open.
    fn clear_diagnostics(&mut self, uri: Uri) -> Result<(), Failure> {
        self.stale.retain(|other| *other != uri);
        self.publish(PublishDiagnosticsParams::new(uri, Vec::new(), None))
    }

    /// Publishes the current findings of a document.
    fn publish_document(&self, uri: &Uri) -> Result<(), Failure> {
        if let Some(document) = self.documents.get(uri) {
            for told in self.provider.diagnostics(&document) {
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

    fn handle_request(&self, request: Request) -> Response {
        if request.method != CodeActionRequest::METHOD {
            let message = format!("method `{}` is not supported", request.method);
            return Response::new_err(request.id, ErrorCode::MethodNotFound as i32, message);
        }
        match serde_json::from_value(request.params) {
            Ok(asked) => {
                Response::new_ok(request.id, self.provider.actions(&asked, &self.documents))
            }
            Err(error) => Response::new_err(
                request.id,
                ErrorCode::InvalidParams as i32,
                error.to_string(),
            ),
        }
    }
}

/// Parses the parameters of a notification. Returns `None` if they are malformed.
fn parse_params<N>(notification: Notification) -> Option<N::Params>
where
    N: lsp_types::notification::Notification,
    N::Params: DeserializeOwned,
{
    serde_json::from_value(notification.params).ok()
}
