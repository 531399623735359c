// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package netguard has no code: its packages bound what requests may do. They import no other folder of internal/.
//
//	httpguard  HTTP clients for hosts that users name: which addresses, how much of an answer, through which proxy
//	hostlist   lists of hosts
//	limit      how much is in use at once, in all and for each caller
//	retry      operations that are repeated with growing pauses
//	slowclient answers to clients that may read slowly
package netguard
