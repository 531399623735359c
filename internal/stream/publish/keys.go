// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"parley.dev/parley/internal/netguard/retry"
)

// KeepKeys brings the relay the key set of the cluster's issuer whenever it wants it, until ctx is done. fetch gets the
// set from the API server. The relay asks rarely: at its start,
// once an hour while somebody reads, and for a key that it does not know.
func (c *Client) KeepKeys(ctx context.Context, fetch func(context.Context) ([]byte, error), log *slog.Logger) {
	_ = c.Await(ctx) // A relay that starts with the generator has readers who wait for its keys. ctx ends this.
	pauses := retry.RelayKeys.Start()
	for ctx.Err() == nil {
		err := c.bringKeys(ctx, fetch)
		if err == nil {
			pauses.Reset()
			continue
		}
		log.DebugContext(ctx, "the relay did not get the issuer's keys", "error", err)
		_ = pauses.Wait(ctx, err) // The loop looks at ctx.
	}
}

// bringKeys waits until keys are wanted, and brings them once.
func (c *Client) bringKeys(ctx context.Context, fetch func(context.Context) ([]byte, error)) error {
	if err := c.keys(ctx, http.MethodGet, "/wanted", nil); err != nil {
		return fmt.Errorf("waiting until keys are wanted: %w", err)
	}
	set, err := fetch(ctx)
	if err != nil {
		return fmt.Errorf("fetching the issuer's keys: %w", err)
	}
	if err := c.keys(ctx, http.MethodPut, "", set); err != nil {
		return fmt.Errorf("bring the relay the issuer's keys: %w", err)
	}
	return nil
}

func (c *Client) keys(ctx context.Context, method, what string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://relay/v1/keys"+what, bytes.NewReader(body))
	if err != nil {
		return err
	}
	return c.do(req, nil, http.StatusNoContent)
}
