// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley.dev/parley/hack/localcluster/internal/apiclient"
)

// restartTimeout bounds a restart. The API server needs about 3 s.
const restartTimeout = time.Minute

// Restart kills one of the cluster's programs, as a crash would, and waits until a new one runs and the cluster is
// healthy again. The first process starts the new one.
func (m Manager) Restart(ctx context.Context, name string) error {
	if !slices.Contains(Components, name) {
		return fmt.Errorf("there is no component %q, there are: %s", name, strings.Join(Components, ", "))
	}
	s, err := m.running()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, restartTimeout,
		fmt.Errorf("%s is not back after %s, see %s", name, restartTimeout, m.Log(name)))
	defer cancel()
	old, ok := s.Init.Child(name)
	if !ok {
		return fmt.Errorf("%s does not run, see %s", name, m.Log(name))
	}
	began := time.Now()
	if err := old.Kill(ctx); err != nil {
		return err
	}
	const poll = 50 * time.Millisecond
	err = apiclient.Until(ctx, poll, func(ctx context.Context) error {
		if now, ok := s.Init.Child(name); !ok || now == old {
			return errors.New("it has not been started again yet")
		}
		return m.healthy(ctx, s)
	})
	if err != nil {
		return err
	}
	m.say("%s restarted in %.1f s", name, time.Since(began).Seconds())
	return nil
}
