// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package protocol has the types of requests to the agent of a workspace: HTTP/1.1, JSON, and the raw bytes of files
// and of output. It uses the standard library only.
//
//	GET    /v1/health                      whether the agent runs; needs no token
//	PUT    /v1/binding                     Binding: the chat that the workspace belongs to; the first one never changes
//	GET    /v1/info                        Info
//	PUT    /v1/processes/KEY               StartRequest; Process; a key that was started before starts nothing
//	GET    /v1/processes                   ProcessList, the newest first
//	GET    /v1/processes/ID                Process; ?wait=SECONDS waits for its end
//	GET    /v1/processes/ID/output         raw output; ?from=OFFSET, ?limit=BYTES, ?wait=SECONDS waits for more
//	POST   /v1/processes/ID/signal         SignalRequest; Process
//	POST   /v1/sessions/KEY                StartRequest; the connection becomes the command's standard input and output
//	GET    /v1/files?path=PATH             raw content; HEAD without it
//	PUT    /v1/files?path=PATH             raw content; FileInfo
//	POST   /v1/read                        ReadRequest; ReadResponse: lines of a text file
//	POST   /v1/edits                       EditRequest; EditResponse: all edits or none
//	POST   /v1/search                      SearchRequest; SearchResponse
//	GET    /v1/changes                     changes.Changes: what is changed since the binding
//	GET    /v1/patch?repository=PATH       the same as a patch: of one repository, or without any, of all files
//
// A session is a command whose standard input and output are the connection: the request asks to upgrade it to Session,
// and 101 answers, with the id of the command in HeaderProcess. Standard error is the command's output. When either
// side closes the connection, or the agent ends, the command ends with all its descendants. A key counts once.
//
// Every request but that for health has the header "Authorization: Bearer" with a service-account token for
// Audience(namespace, pod UID), and, but for the binding, HeaderChat. The token is one of a generation pod of the
// namespace; for changes and patches, one of the gateway. A refusal has an Error as its body. PATH is
// relative to the workspace's directory, or absolute within it.
package protocol
