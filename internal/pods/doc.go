// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pods has no code: its packages are about generation pods, and about when an attempt may have one. They know
// no chat, and import no other folder of internal/.
//
//	podspec      the objects of a pod, and of what it runs with
//	podstate     whether a pod can work
//	placement    which pod takes an attempt
//	capacity     how many chats generate at once: the quotas
//	modellimits  how often each model is called: the limits of ChatModelConfigs
package pods
