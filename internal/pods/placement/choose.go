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

// Surge is how many times its capacity a ready pod serves while further pods start: 3. A chat in a pod of 300 is
// answered sooner than one that waits for a new pod, whose start also slows down the chats next to it.
const Surge = 3

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
	// Capacity is how many chats a pod may have. A ready one may have Surge times as many if no ready one has room.
	Capacity int
}

// Choice is the pod that takes an attempt.
type Choice struct {
	// Pod is its name; empty: none has room.
	Pod string
	// Grow is true if the pod has more chats than its capacity, and none is starting that would take some of them.
	Grow bool
}

func (p Pod) fits(want Want) bool {
	return p.Usable && p.Template == want.Template && p.Created.After(want.After)
}

// choose picks the preferred pod if it will do, else the least loaded ready one with room, else the least loaded ready
// one below its surge, else the least loaded starting one.
func choose(pods []Pod, want Want, load func(string) int) Choice {
	var ready, starting leastLoaded
	for _, pod := range pods {
		if !pod.fits(want) {
			continue
		}
		n := load(pod.Name)
		hasRoom := n < want.Capacity
		switch {
		case hasRoom && pod.Name == want.Prefer:
			return Choice{Pod: pod.Name}
		case pod.Ready:
			ready.add(pod.Name, n, Surge*want.Capacity)
		case hasRoom:
			starting.add(pod.Name, n, want.Capacity)
		}
	}
	if ready.pod == "" {
		return Choice{Pod: starting.pod}
	}
	return Choice{Pod: ready.pod, Grow: starting.pod == "" && ready.load >= want.Capacity}
}

// leastLoaded is the first of the pods with the fewest chats.
type leastLoaded struct {
	pod  string
	load int
}

// add compares the pod, unless it has as many chats as it may have.
func (l *leastLoaded) add(pod string, load, most int) {
	if load < most && (l.pod == "" || load < l.load) {
		l.pod, l.load = pod, load
	}
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
