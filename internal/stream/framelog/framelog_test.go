// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package framelog

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// line is the text of a numbered line, some of them long.
func line(seq int64) string { return fmt.Sprintf("%d:%s", seq, strings.Repeat("x", int(seq*seq%977))) }

// TestReadersGetEveryLineOnce lets readers of different speeds read a log that grows and is dropped from.
func TestReadersGetEveryLineOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, first := range []int64{0, 41} {
		log := After(first)
		readers := make([]int64, 5)
		for i := range readers {
			readers[i] = first
		}
		for log.Last() < first+2000 {
			for range random.IntN(40) {
				log.Append([]byte(line(log.Last() + 1)))
			}
			slowest := log.Last()
			for i := range readers {
				if random.IntN(i+1) == 0 {
					readers[i] = read(t, &log, readers[i])
				}
				slowest = min(slowest, readers[i])
			}
			if random.IntN(4) == 0 {
				log.Drop(random.IntN(8<<10), slowest)
			}
			if log.Dropped() > slowest {
				t.Fatalf("%d lines are dropped, and a reader is at %d", log.Dropped(), slowest)
			}
		}
	}
}

// read reads one batch behind a number, and returns the number of its last line.
func read(t *testing.T, log *Log, after int64) int64 {
	t.Helper()
	lines, last := log.Behind(after)
	if len(lines) > maxBatch+1000 {
		t.Fatalf("a batch of %d bytes", len(lines))
	}
	seq := after
	for got := range strings.Lines(string(lines)) {
		seq++
		if want := line(seq) + "\n"; got != want {
			t.Fatalf("line %d is %.20q, want %.20q", seq, got, want)
		}
	}
	if seq != last {
		t.Fatalf("the batch ends with %d, and says %d", seq, last)
	}
	return last
}

func TestDropKeepsWhatFits(t *testing.T) {
	for _, test := range []struct {
		name        string
		keep        int
		upTo        int64
		wantDropped int64
		wantBytes   int
	}{
		{"nothing, where all fits", 50, 10, 0, 50},
		{"the oldest, where some does", 20, 10, 3, 20},
		{"no half line", 19, 10, 4, 10},
		{"all, where nothing may stay", 0, 10, 5, 0},
		{"none that may be wanted", 0, 2, 2, 30},
	} {
		t.Run(test.name, func(t *testing.T) {
			var log Log
			for range 5 {
				log.Append([]byte("123456789"))
			}
			if log.Drop(test.keep, test.upTo); log.Dropped() != test.wantDropped || log.Bytes() != test.wantBytes ||
				log.Last() != 5 {
				t.Errorf("dropped up to %d, %d bytes are left, and the last is %d", log.Dropped(), log.Bytes(), log.Last())
			}
		})
	}
}

func TestWhatAReaderHoldsStaysAsItWas(t *testing.T) {
	var log Log
	log.Append([]byte("one"))
	held, _ := log.Behind(0)
	log.Append([]byte("two"))
	log.Drop(4, 2)
	log.Append([]byte("three"))
	if string(held) != "one\n" {
		t.Errorf("it became %q", held)
	}
}
