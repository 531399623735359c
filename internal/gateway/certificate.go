// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// certificateAge is how long a certificate is served before its files are read again.
const certificateAge = 10 * time.Second

// certificate is served from two files that others replace. It reads them when a client comes, at most every ten
// seconds. A pair that cannot be read, as may be in the middle of a replacement, leaves the last good one.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger
	now               func() time.Time

	mu     sync.Mutex
	loaded *tls.Certificate
	read   time.Time
}

// TLS is the configuration of a server whose certificate and key are in two PEM files.
// It fails if they cannot be read now. now returns the current time.
func TLS(certFile, keyFile string, log *slog.Logger, now func() time.Time) (*tls.Config, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log, now: now}
	if err := c.load(now()); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}, nil
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); now.Sub(c.read) >= certificateAge {
		if err := c.load(now); err != nil {
			c.log.Warn("the certificate is not replaced", "error", err)
		}
	}
	return c.loaded, nil
}

// load reads the files. The caller holds mu, or is the only one.
func (c *certificate) load(now time.Time) error {
	c.read = now
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("reading the certificate: %w", err)
	}
	c.loaded = &pair
	return nil
}
