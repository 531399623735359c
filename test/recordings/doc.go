// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recordings holds what Parley makes of real providers' replies, and what it sends them, against recordings of
// real conversations: those that the module charm.land/fantasy tests itself with.
// They are read from the module; none are kept here.
//
// Each streamed reply is served again, byte for byte in pieces of random size, whole and broken. What a generation pod
// would commit is held against a parser of its own for each protocol, and each request against the recorded one.
package recordings
