// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"parley.dev/parley/api/v1beta1"
)

// rounds of a burst that count; one more before them warms up the generation pods and the manager's cache.
const rounds = 3

// bursts gives so many chats a message at once, with a model that answers at once, in turn with a bare client that
// makes the same writes: the machine's mood of the minute meets both. The figures are the medians.
func (b *bench) bursts(ctx context.Context, f *Figures, chats, laps int) error {
	if err := b.script(ctx, answer(0)); err != nil {
		return err
	}
	var system, bare series
	var result Burst
	for lap := range laps {
		prefix := fmt.Sprintf("burst%d-%d-", chats, lap)
		if err := b.burst(ctx, f, &result, &system, prefix, chats); err != nil {
			return err
		}
		if err := b.bare(ctx, &bare, prefix, chats, result.WritesPerTurn > 5.5); err != nil {
			return err
		}
	}
	result.TurnsPerSecond, result.BarePerSecond = median(system.rates), median(bare.rates)
	result.ServerCPU, result.BareServerCPU = median(system.serverCPU), median(bare.serverCPU)
	result.OwnCPU = median(system.ownCPU)
	result.CPUShare = (result.ServerCPU + result.OwnCPU) / result.BareServerCPU
	result.ShareOfBare = result.TurnsPerSecond / result.BarePerSecond
	f.Burst[fmt.Sprint(chats)] = result
	return nil
}

// series has the figures of each round.
type series struct {
	// rates are turns per second, serverCPU what a turn costs the API server in milliseconds.
	rates, serverCPU []float64
	// ownCPU is what a turn costs Parley's programs in milliseconds, in each lap.
	ownCPU []float64
}

// round measures a round of so many turns.
func (b *bench) round(ctx context.Context, to *series, turns int, play func() error) error {
	used, err := b.serverCPU(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := play(); err != nil {
		return err
	}
	to.rates = append(to.rates, float64(turns)/time.Since(began).Seconds())
	now, err := b.serverCPU(ctx)
	to.serverCPU = append(to.serverCPU, (now-used)*1000/float64(turns))
	return err
}

// unless is what a round adds its figures to: none, if it warms up.
func (s *series) unless(warmUp bool) *series {
	if warmUp {
		return &series{}
	}
	return s
}

// keepBusy gives 100 chats a message each, again and again.
func keepBusy(ctx context.Context, model string, long time.Duration) error {
	b, err := newBench(ctx, model)
	if err != nil {
		return err
	}
	if err := b.script(ctx, answer(0)); err != nil {
		return err
	}
	const chats = 100
	if err := each(ctx, chats, func(ctx context.Context, i int) error {
		return b.create(ctx, &v1beta1.Chat{ObjectMeta: meta(fmt.Sprint("busy-", i))})
	}); err != nil {
		return err
	}
	began := time.Now()
	for round := 0; time.Since(began) < long; round++ {
		roundBegan := time.Now()
		if err := b.burstRound(ctx, "busy-", chats, round); err != nil {
			return err
		}
		fmt.Printf("busy: %.0f turns/s\n", chats/time.Since(roundBegan).Seconds())
	}
	return nil
}

func median(all []float64) float64 {
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

// burst adds the figures of its rounds.
func (b *bench) burst(ctx context.Context, f *Figures, result *Burst, to *series, prefix string, chats int) error {
	if err := each(ctx, chats, func(ctx context.Context, i int) error {
		return b.create(ctx, &v1beta1.Chat{ObjectMeta: meta(fmt.Sprint(prefix, i))})
	}); err != nil {
		return err
	}
	var before usage
	var written writeCounts
	for round := range rounds + 1 {
		if round == 1 {
			var err error
			if before, written, err = b.account(ctx); err != nil {
				return err
			}
		}
		if err := b.round(ctx, to.unless(round == 0), chats, func() error {
			return b.burstRound(ctx, prefix, chats, round)
		}); err != nil {
			return err
		}
	}
	after, now, err := b.account(ctx)
	if err != nil {
		return err
	}
	turns := float64(rounds * chats)
	f.RSS = after.rss
	f.CPU = after.since(before).per(turns / 1000)
	to.ownCPU = append(to.ownCPU, f.CPU.Manager+f.CPU.Generator+f.CPU.Relay+f.CPU.Gateway)
	result.WritesPerTurn = (now.writes - written.writes) / turns
	return nil
}

// account is what has been used and written once nothing is being written any more.
func (b *bench) account(ctx context.Context) (usage, writeCounts, error) {
	written, err := b.settledWrites(ctx)
	if err != nil {
		return usage{}, written, err
	}
	used, err := b.usage(ctx)
	return used, written, err
}

func (b *bench) burstRound(ctx context.Context, prefix string, chats, round int) error {
	if err := each(ctx, chats, func(ctx context.Context, i int) error {
		return b.say(ctx, fmt.Sprint(prefix, i), fmt.Sprintf("%s%d-m%d", prefix, i, round))
	}); err != nil {
		return err
	}
	return b.follow.until(ctx, func(all map[string]*v1beta1.Chat) bool {
		for i := range chats {
			if !isAnswered(all[fmt.Sprint(prefix, i)], int64(2*round+2)) {
				return false
			}
		}
		return true
	})
}

// each runs n at once and waits for all.
func each(ctx context.Context, n int, run func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for i := range n {
		group.Go(func() error { return run(ctx, i) })
	}
	return group.Wait()
}

// writers is how many requests some makes at once.
const writers = 16

// some runs n, as many at once as there are writers, and waits for all.
func some(ctx context.Context, n int, run func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range n {
		group.Go(func() error { return run(ctx, i) })
	}
	return group.Wait()
}
