// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placement decides which generation pod takes a chat's next attempt, and counts the chats of each pod. It uses
// no client: callers pass the pods.
package placement

import "time"

// DefaultCapacity is how many chats one generation pod serves at once: 100, since model calls are waiting for the
// network. Every pod watches its chats, so that fewer pods mean less work for the API server; a pod that is lost costs
// its chats one attempt.
const DefaultCapacity = 100

// Pod is a generation pod.
type Pod struct {
	// Name of the pod.
	Name string
	// Template is the hash of the settings that the pod was built from.
	Template string
	// Created is when the pod was created.
	Created time.Time
	// Usable is false for a pod that is being removed, has failed, or was ready and is no longer.
	Usable bool
	// Ready is true when the pod can begin at once.
	Ready bool
}

// Want is what an attempt needs of its pod.
type Want struct {
	// Template that the pod must have been built from.
	Template string
	// After is the time after which the pod must have been created; zero: any.
	After time.Time
	// Prefer is the pod to take if it fits.
	Prefer string
	// Capacity is how many chats a pod may have.
	Capacity int
}

func (p Pod) fits(want Want) bool {
	return p.Usable && p.Template == want.Template && p.Created.After(want.After)
}

// choose picks the preferred pod if it fits, else the least loaded ready one, else the least loaded starting one.
func choose(pods []Pod, want Want, load func(string) int) (string, bool) {
	best, bestLoad, bestReady := "", 0, false
	for _, pod := range pods {
		n := load(pod.Name)
		if n >= want.Capacity || !pod.fits(want) {
			continue
		}
		if pod.Name == want.Prefer {
			return pod.Name, true
		}
		better := best == "" || (pod.Ready && !bestReady) || (pod.Ready == bestReady && n < bestLoad)
		if better {
			best, bestLoad, bestReady = pod.Name, n, pod.Ready
		}
	}
	return best, best != ""
}

// RefusedError means that the API server refuses a generation pod, or an object that it needs.
type RefusedError struct {
	// Words are the API server's message.
	Words string
	// Until is the time of the next try.
	Until time.Time
}

// Error implements error.
func (e *RefusedError) Error() string { return "the API server refuses a generation pod: " + e.Words }
