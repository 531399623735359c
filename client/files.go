// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"

	"parley.dev/parley/api/v1beta1"
)

// UploadFile stores a file for messages of a chat, which name it by what is returned. It has at most 3.5 MiB. It is
// deleted with the chat, and after a day if no message names it.
func UploadFile(ctx context.Context, n Namespace, chat string, content []byte) (*v1beta1.StoredFile, error) {
	sum := sha256.Sum256(content)
	stored := &v1beta1.StoredFile{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(content))}
	path, err := n.path("chats", chat)
	if err != nil {
		return nil, err
	}
	// A refusal comes before the content is sent.
	header := http.Header{"Content-Type": {"application/octet-stream"}, "Expect": {"100-continue"}}
	response, err := n.client.send(ctx, http.MethodPut, path+"/files/"+stored.SHA256, nil, header,
		bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	return stored, response.Body.Close()
}

// ReadArchivedFile returns the content of a file of an archived chat. It fails if the content does not have the digest.
func ReadArchivedFile(ctx context.Context, n Namespace, chat, uid, digest string) ([]byte, error) {
	path, err := n.archivePath(chat, uid)
	if err != nil {
		return nil, err
	}
	response, err := n.client.send(ctx, http.MethodGet, path+"/files/"+digest, nil, http.Header{}, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(response.Body, v1beta1.MaxStoredFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading file %s of the archive of chat %s: %w", digest, chat, err)
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != digest {
		return nil, fmt.Errorf("reading file %s of the archive of chat %s: the content differs", digest, chat)
	}
	return content, nil
}
