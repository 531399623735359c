// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// jwksRefetch is the least time between two fetches: a token with an invented key id must not cost the API server more.
	jwksRefetch = 10 * time.Second
	// jwksMaxAge is when keys are fetched afresh though all key ids are known, so that a withdrawn key stops counting.
	jwksMaxAge = time.Hour
	// jwksTimeout bounds one fetch.
	jwksTimeout = 5 * time.Second
	// jwksMaxBytes bounds the document. An RSA key of 4096 bits takes under 1 KiB of it.
	jwksMaxBytes = 1 << 20
)

// KeySource is where the cluster's issuer publishes the keys that sign service-account tokens.
type KeySource struct {
	// URL of the key set.
	URL string
	// CAFile holds the PEM certificates that vouch for the server; empty means those of the system.
	CAFile string
	// TokenFile holds the bearer token for the request; it is read for each, because it is rotated. Empty means none.
	TokenFile string
	// Now tells the time, default time.Now.
	Now func() time.Time
	// Log, default slog.Default.
	Log *slog.Logger

	mu      sync.Mutex
	keys    jose.JSONWebKeySet
	fetched time.Time // last success
	tried   time.Time // last try
	failure error     // of the last try
}

// Key finds the keys with an id. It fetches the set if it does not know the id, at most every ten seconds.
func (k *KeySource) Key(ctx context.Context, id string) ([]jose.JSONWebKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	found := k.keys.Key(id)
	fresh := !k.fetched.IsZero() && now.Sub(k.fetched) < jwksMaxAge
	if len(found) > 0 && fresh {
		return found, nil
	}
	if k.tried.IsZero() || now.Sub(k.tried) >= jwksRefetch {
		k.refetch(ctx, now)
		found = k.keys.Key(id)
	}
	if len(found) == 0 && k.failure != nil { // it is not the token's fault
		return nil, k.failure
	}
	return found, nil
}

// refetch replaces the keys. If it fails the old ones stay: better an old key than no streams while the API server is
// away.
func (k *KeySource) refetch(ctx context.Context, now time.Time) {
	k.tried = now
	keys, err := k.fetch(ctx)
	if err != nil {
		k.failure = fmt.Errorf("fetch the issuer's keys from %s: %w", k.URL, err)
		k.log().WarnContext(ctx, "cannot tell who signs tokens", "error", k.failure)
		return
	}
	k.keys, k.fetched, k.failure = keys, now, nil
}

func (k *KeySource) fetch(ctx context.Context) (jose.JSONWebKeySet, error) {
	var keys jose.JSONWebKeySet
	ctx, cancel := context.WithTimeout(ctx, jwksTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, k.URL, nil)
	if err != nil {
		return keys, err
	}
	if k.TokenFile != "" {
		token, err := os.ReadFile(k.TokenFile)
		if err != nil {
			return keys, fmt.Errorf("read the token: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	client, err := k.client()
	if err != nil {
		return keys, err
	}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return keys, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return keys, fmt.Errorf("answer %s", resp.Status)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, jwksMaxBytes)).Decode(&keys); err != nil {
		return keys, fmt.Errorf("decode the keys: %w", err)
	}
	return keys, nil
}

// client is made for each fetch, which is rare, because the CA can be rotated as well.
func (k *KeySource) client() (*http.Client, error) {
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	if k.CAFile != "" {
		pem, err := os.ReadFile(k.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the CA: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, errors.New("the CA file holds no certificate")
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	return &http.Client{Transport: transport}, nil
}

func (k *KeySource) now() time.Time {
	if k.Now == nil {
		return time.Now()
	}
	return k.Now()
}

func (k *KeySource) log() *slog.Logger {
	if k.Log == nil {
		return slog.Default()
	}
	return k.Log
}
