// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package protocol is what generation pods and the agent of a workspace say to each other: HTTP/1.1, JSON, and the raw
// bytes of files and of output. It uses the standard library only.
//
//	GET    /v1/health                      is the agent at work; needs no token
//	PUT    /v1/binding                     Binding: which chat the workspace belongs to; the first one counts for ever
//	GET    /v1/info                        Info
//	PUT    /v1/processes/KEY               StartRequest; Process; a key that was started before starts nothing
//	GET    /v1/processes                   ProcessList, the newest first
//	GET    /v1/processes/ID                Process; ?wait=SECONDS waits for its end
//	GET    /v1/processes/ID/output         raw output; ?from=OFFSET, ?limit=BYTES, ?wait=SECONDS waits for more
//	POST   /v1/processes/ID/signal         SignalRequest; Process
//	POST   /v1/sessions/KEY                StartRequest; the connection becomes the command's standard input and output
//	GET    /v1/files/PATH                  raw content; HEAD without it
//	PUT    /v1/files/PATH                  raw content; FileInfo
//	POST   /v1/read                        ReadRequest; ReadResponse: lines of a text file
//	POST   /v1/edits                       EditRequest; EditResponse: all edits or none
//	POST   /v1/search                      SearchRequest; SearchResponse
//
// A session is one command that is spoken to: the request asks to upgrade the connection to Session, and 101 answers,
// with the id of the command in HeaderProcess. From then on what the client sends is the command's standard input, and
// what it receives its standard output; what the command writes to standard error is its output. When either side ends
// the connection, the command ends with all that it has started; so it does when the agent ends. A key counts once.
//
// Every request but that for health has the header "Authorization: Bearer" with a service-account token for
// Audience(namespace, pod UID), and, but for the binding, HeaderChat. A refusal has an Error as its body. PATH is
// relative to the workspace's directory, escaped as in a URL.
package protocol
