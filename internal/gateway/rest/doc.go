// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rest lets callers of the gateway read and change chats: it translates requests into those that the API server
// knows, and sends them with the caller's own token. Who may do what is the API server's to say. The gateway's own
// account is never used, and nothing is kept.
package rest
