// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/workspace/protocol"
)

// contentTime is how long the content of a file may be on its way, besides Options.Timeout.
const contentTime = 30 * time.Second

// Read reads lines of a text file.
func (c *Client) Read(ctx context.Context, r protocol.ReadRequest) (*protocol.ReadResponse, error) {
	var got protocol.ReadResponse
	if err := c.agent.json(ctx, request{method: http.MethodPost, path: "/v1/read"}, r, &got); err != nil {
		return nil, err
	}
	return &got, nil
}

// Content is the content of a file, at most so many bytes: protocol.TooLarge is the refusal of a larger one.
func (c *Client) Content(ctx context.Context, file string, most int64) ([]byte, error) {
	where, err := c.filePath(ctx, file)
	if err != nil {
		return nil, err
	}
	most = min(most, protocol.MaxFileBytes)
	r := request{method: http.MethodGet, path: where, most: most + 1, partly: true, wait: contentTime}
	got, err := c.agent.do(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case int64(len(got.body)) > most:
		return nil, &protocol.Error{Code: protocol.TooLarge, Message: fmt.Sprintf(
			"the file %.200q has more than %d bytes", file, most)}
	}
	return got.body, nil
}

// Write writes a file as a whole, once under a key.
func (c *Client) Write(ctx context.Context, key, file string, content []byte) (*protocol.FileInfo, error) {
	where, err := c.filePath(ctx, file)
	if err != nil {
		return nil, err
	}
	if len(content) > protocol.MaxFileBytes {
		return nil, &protocol.Error{Code: protocol.TooLarge, Message: fmt.Sprintf(
			"the content has %d bytes, and %d are the most", len(content), protocol.MaxFileBytes)}
	}
	if content == nil {
		content = []byte{}
	}
	var info protocol.FileInfo
	err = c.agent.json(ctx, request{
		method: http.MethodPut, path: where, key: key, body: content, bodyType: "application/octet-stream", wait: contentTime,
	}, nil, &info)
	if err != nil {
		return nil, err
	}
	info.Path, info.Type = name(info.Path), line(info.Type)
	return &info, nil
}

// Edit changes files, all as asked or none, once under a key.
func (c *Client) Edit(ctx context.Context, key string, r protocol.EditRequest) (*protocol.EditResponse, error) {
	var got protocol.EditResponse
	if err := c.agent.json(ctx, request{method: http.MethodPost, path: "/v1/edits", key: key}, r, &got); err != nil {
		return nil, err
	}
	for i := range got.Files {
		got.Files[i].Path = name(got.Files[i].Path)
	}
	return &got, nil
}

// Search looks for files by name, and in them by content.
func (c *Client) Search(ctx context.Context, r protocol.SearchRequest) (*protocol.SearchResponse, error) {
	var got protocol.SearchResponse
	err := c.agent.json(ctx, request{method: http.MethodPost, path: "/v1/search", wait: contentTime}, r, &got)
	if err != nil {
		return nil, err
	}
	for i := range got.Matches {
		got.Matches[i].Path = name(got.Matches[i].Path)
	}
	return &got, nil
}

// maxName is the longest path that Linux takes.
const maxName = 4096

// name is the path of a file as a workspace tells it. It stays exact, as it may be asked for again.
func name(path string) string { return clip.Bytes(path, maxName) }

// filePath is where the content of a file is asked for.
func (c *Client) filePath(ctx context.Context, file string) (string, error) {
	file, err := c.within(ctx, file)
	switch {
	case err != nil:
		return "", err
	case file == ".":
		return "", &protocol.Error{Code: protocol.NotRegular, Message: "the path is that of a directory: name a file"}
	}
	words := strings.Split(file, "/")
	for i := range words {
		words[i] = url.PathEscape(words[i])
	}
	return "/v1/files/" + strings.Join(words, "/"), nil
}

// within is a path relative to the workspace's directory, as URLs can hold it: without . and .., and without what leads
// out of the directory. What links lead to is the agent's business.
func (c *Client) within(ctx context.Context, file string) (string, error) {
	if file == "" || strings.ContainsRune(file, 0) {
		return "", &protocol.Error{Code: protocol.BadRequest, Message: "the path is empty or has a NUL: name a file"}
	}
	local := path.Clean(file)
	if path.IsAbs(local) {
		directory, err := c.directoryOf(ctx)
		if err != nil {
			return "", err
		}
		if local == directory {
			return ".", nil
		}
		inside, ok := strings.CutPrefix(local, strings.TrimSuffix(directory, "/")+"/")
		if !ok {
			return "", outside(file, directory)
		}
		local = inside
	}
	if local == ".." || strings.HasPrefix(local, "../") {
		return "", outside(file, "the workspace's directory")
	}
	return local, nil
}

func outside(file, directory string) error {
	return &protocol.Error{Code: protocol.OutsideWorkspace, Message: fmt.Sprintf(
		"the path %.200q leads out of %s: name a file within it", file, directory)}
}

// directoryOf is the workspace's directory. The agent is asked once: a workspace does not move.
func (c *Client) directoryOf(ctx context.Context) (string, error) {
	c.mu.Lock()
	known := c.directory
	c.mu.Unlock()
	if known != "" {
		return known, nil
	}
	info, err := c.Info(ctx)
	if err != nil {
		return "", err
	}
	if !path.IsAbs(info.Directory) {
		return "", &AnswerError{Status: http.StatusOK, Problem: "without the workspace's directory"}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.directory = path.Clean(info.Directory)
	return c.directory, nil
}
