// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package server is what generation pods reach of the agent of a workspace: the requests of package protocol over
// HTTP/1.1.
//
// Who asks proves with a service-account token that it is a generation pod of this namespace, and names the chat that
// the workspace is bound to. The first binding counts for ever; one that cannot be read any more lets nobody in. What
// requests can cost is bounded: how many are at work at once, their headers and bodies, and how long they may take.
//
// Nothing that a request holds is logged, no token, and no content; what a log says of errors is cleaned.
package server
