// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kube has no code: its packages are about the API server. Programs with controller-runtime use the caches and
// queues (index, packed, requeue, shard), those without it the typed client (apiclient). They may import chat, netguard
// and text.
//
//	backup      restores chats from the objects of a backup
//	apiclient   the client of generation pods, gateway and kubectl chat
//	kubeapi     requests as a service account, with its tokens
//	index       what the manager's cache keeps, and by which fields it is asked
//	packed      an informer that keeps objects in few bytes
//	requeue     work queues: fair among namespaces, with a wait after failures
//	shard       which namespaces a manager works for
//	ensure      objects that Parley keeps as they must be, by server-side apply
//	denial      refusals that last, in the words of the API server
//	startup     refusals that pass once the API server has started
//	satoken     service-account tokens, verified
//	tokencache  service-account tokens, kept until they expire
package kube
