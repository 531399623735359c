// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiclient asks the few questions about a cluster's health that starting and stopping it need, and keeps the
// few objects that a cluster is given.
//
// It speaks plain HTTPS with a client certificate: the programs that manage the cluster stay free of Kubernetes'
// client libraries and start in milliseconds.
package apiclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// requestTimeout bounds one question. A healthy local API server answers in milliseconds.
const requestTimeout = 5 * time.Second

// Client asks one API server, as one user.
type Client struct {
	server string
	http   *http.Client
}

// New makes a client for the user whose certificate is in dir (see package pki). It never uses a proxy.
func New(dir, user, server string) (*Client, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, user+".crt"), filepath.Join(dir, user+".key"))
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of %s: %w", user, err)
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("reading the certificate authority: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("ca.crt holds no certificate")
	}
	return &Client{server: server, http: &http.Client{
		Timeout: requestTimeout,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair},
			MinVersion: tls.VersionTLS12}},
	}}, nil
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Get reads one path. An answer other than 200 is an error that holds the answer's beginning.
func (c *Client) Get(ctx context.Context, path string) ([]byte, error) {
	return c.ask(ctx, http.MethodGet, path, nil, http.StatusOK)
}

// Healthy returns nil once the API server serves requests.
func (c *Client) Healthy(ctx context.Context) error {
	_, err := c.Get(ctx, "/readyz")
	return err
}

// ServiceAccount returns nil once pods of the namespace "default" can be created.
func (c *Client) ServiceAccount(ctx context.Context) error {
	_, err := c.Get(ctx, "/api/v1/namespaces/default/serviceaccounts/default")
	return err
}

// NodeReady returns nil once the node accepts pods; before that, the node's own reason.
func (c *Client) NodeReady(ctx context.Context, name string) error {
	b, err := c.Get(ctx, "/api/v1/nodes/"+name)
	if err != nil {
		return err
	}
	var node struct {
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	if err := json.Unmarshal(b, &node); err != nil {
		return fmt.Errorf("reading node %s: %w", name, err)
	}
	for _, c := range node.Status.Conditions {
		if c.Type == "Ready" && c.Status == "True" {
			return nil
		}
		if c.Type == "Ready" {
			return fmt.Errorf("node %s is not ready: %s", name, c.Message)
		}
	}
	return fmt.Errorf("node %s has not reported yet", name)
}

// Until asks every interval until the answer is nil, or ctx ends; then the error holds the last answer.
func Until(ctx context.Context, interval time.Duration, ask func(context.Context) error) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		last := ask(ctx)
		if last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); errors.Is(last, cause) {
				return cause // the last answer says nothing else
			}
			return fmt.Errorf("%w (last: %w)", context.Cause(ctx), last)
		case <-tick.C:
		}
	}
}
