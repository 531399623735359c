// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package server serves the requests of package protocol to generation pods.
//
// A request has a service-account token of a generation pod of this namespace, and names the chat that the workspace is
// bound to. The first binding never changes. While it cannot be read, all requests are refused. The number, the size
// and the time of requests are bounded.
//
// Logs have no token and no content of a request. Errors are cleaned before they are logged.
package server
