// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modellimits

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// window has amounts of the last minute, the oldest first. One that was added for time t no longer counts at t + 60 s.
type window struct {
	amounts []amount
	sum     int64
}

type amount struct {
	at   time.Time
	chat types.NamespacedName
	n    int64
}

func (w *window) add(at time.Time, chat types.NamespacedName, n int64) {
	i := w.index(at)
	for i < len(w.amounts) && w.amounts[i].at.Equal(at) {
		i++
	}
	w.amounts = slices.Insert(w.amounts, i, amount{at, chat, n})
	w.sum += n
}

// find returns the index of the chat's amount of that time; -1 if there is none.
func (w *window) find(at time.Time, chat types.NamespacedName) int {
	for i := w.index(at); i < len(w.amounts) && w.amounts[i].at.Equal(at); i++ {
		if w.amounts[i].chat == chat {
			return i
		}
	}
	return -1
}

func (w *window) remove(at time.Time, chat types.NamespacedName) {
	if i := w.find(at, chat); i >= 0 {
		w.sum -= w.amounts[i].n
		w.amounts = slices.Delete(w.amounts, i, i+1)
	}
}

func (w *window) prune(now time.Time) {
	expired := w.index(now.Add(-minute).Add(1)) // Amounts of exactly a minute ago are expired, too.
	for _, a := range w.amounts[:expired] {
		w.sum -= a.n
	}
	w.amounts = slices.Delete(w.amounts, 0, expired)
}

// until is when so much of the sum has expired; zero if the sum is less.
func (w *window) until(excess int64) time.Time {
	for _, a := range w.amounts {
		if excess -= a.n; excess <= 0 {
			return a.at.Add(minute)
		}
	}
	return time.Time{}
}

// since is the number of amounts that were added for t or later.
func (w *window) since(t time.Time) int { return len(w.amounts) - w.index(t) }

// index is that of the first amount of t or later.
func (w *window) index(t time.Time) int {
	i, _ := slices.BinarySearchFunc(w.amounts, t, func(a amount, t time.Time) int { return a.at.Compare(t) })
	return i
}
