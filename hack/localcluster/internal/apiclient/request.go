// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package apiclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
)

// Create creates an object in the list at path. One of its name that is there already is no error.
func (c *Client) Create(ctx context.Context, path string, object any) error {
	_, err := c.ask(ctx, http.MethodPost, path, object, http.StatusCreated, http.StatusConflict)
	return err
}

// Delete deletes the object at path. One that is gone is no error.
func (c *Client) Delete(ctx context.Context, path string) error {
	_, err := c.ask(ctx, http.MethodDelete, path, nil, http.StatusOK, http.StatusAccepted, http.StatusNotFound)
	return err
}

// Watch calls changed for each object that the list at path holds, and then for whatever happens to one, until the API
// server ends the watch, which it does every hour or so, or ctx ends.
func (c *Client) Watch(ctx context.Context, path string, changed func()) error {
	unbounded := &http.Client{Transport: c.http.Transport} // A watch is no question: it lasts.
	resp, err := c.send(ctx, unbounded, http.MethodGet, path+"?watch=true", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("watching %s: %s", path, resp.Status)
	}
	events := json.NewDecoder(resp.Body)
	for {
		var event json.RawMessage
		err := events.Decode(&event)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("watching %s: %w", path, err)
		}
		changed()
	}
}

// ask makes one request. An answer whose status is none of those expected is an error that holds its beginning.
func (c *Client) ask(ctx context.Context, method, path string, object any, expected ...int) ([]byte, error) {
	resp, err := c.send(ctx, c.http, method, path, object)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	const limit = 64 << 20 // an object is a few KiB, and a small cluster has some thousand claims at most
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit))
	if err != nil {
		return nil, fmt.Errorf("reading the answer to %s %s: %w", method, path, err)
	}
	if !slices.Contains(expected, resp.StatusCode) {
		return nil, fmt.Errorf("asking to %s %s: %s: %.200s", method, path, resp.Status, body)
	}
	return body, nil
}

func (c *Client) send(ctx context.Context, by *http.Client, method, path string, object any) (*http.Response, error) {
	var body io.Reader
	if object != nil {
		raw, err := json.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("encoding what to %s to %s: %w", method, path, err)
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.server+path, body)
	if err != nil {
		return nil, fmt.Errorf("asking to %s %s: %w", method, path, err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := by.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking to %s %s: %w", method, path, err)
	}
	return resp, nil
}
