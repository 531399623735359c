// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workspace has no code: its packages are about the files and commands of a chat. They may import chat, kube,
// netguard, pods and text; the agent links neither Kubernetes nor a model.
//
//	life        when a workspace has a pod, and what its status says; controllers/workspace carries that out
//	template    the pod and the claim, from a PodTemplate
//	parameters  the parameters of a template
//	protocol    what generation pods, gateways and the agent exchange
//	client      requests to an agent
//	agent/      the program in the workspace: server takes requests, files reads and changes files, review
//	            finds what is changed, process runs commands, each below a supervisor, and initproc does what process 1
//	            has to
//
// A command and all that it has started are ended by agent/process/signal.go. internal/tools/workspace/await.go asks
// for that when a call is interrupted, and agent/initproc/stop.go ends everything when the pod stops.
package workspace
