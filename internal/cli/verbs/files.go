// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"encoding/base64"
	"fmt"
	"mime"
	"net/http"
	"os"
	"path/filepath"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/client"
)

// maxInPlace is how many characters of base64 the files of a message may have together, so that its text has room too.
const maxInPlace = 700 << 10

// attach adds files to a message of a chat: in place, or by the gateway those that are too large for that.
func attach(ctx context.Context, s *session, chat string, to *v1beta1.ChatMessageSpec, files []localFile) error {
	if len(files) == 0 {
		return nil
	}
	if to.Content != "" {
		to.Parts = append(to.Parts, v1beta1.MessagePart{Type: v1beta1.PartText, Text: new(to.Content)})
		to.Content = ""
	}
	room := maxInPlace
	for _, f := range files {
		var err error
		file := &v1beta1.MessageFile{Name: filepath.Base(f.path), MediaType: mediaTypeOf(f.path, f.content)}
		if size := base64.StdEncoding.EncodedLen(len(f.content)); size <= room {
			room -= size
			file.Data = base64.StdEncoding.EncodeToString(f.content)
		} else if file.Stored, err = upload(ctx, s, chat, f.content); err != nil {
			return fmt.Errorf("uploading %s: %w", f.path, err)
		}
		to.Parts = append(to.Parts, v1beta1.MessagePart{Type: v1beta1.PartFile, File: file})
	}
	return nil
}

// localFile is one that was read.
type localFile struct {
	path    string
	content []byte
}

// readFiles reads files that a message can have, each once: it may be a pipe.
func readFiles(paths []string) (files []localFile, err error) {
	for _, path := range paths {
		content, err := os.ReadFile(path)
		switch {
		case err != nil:
			return nil, usageError{err}
		case len(content) == 0:
			return nil, usageError{fmt.Errorf("%s is empty", path)}
		case len(content) > v1beta1.MaxStoredFileBytes:
			return nil, usageError{fmt.Errorf("%s is larger than 3.5 MiB, the most that a model reads of a file", path)}
		}
		files = append(files, localFile{path, content})
	}
	return files, nil
}

// mediaTypeOf is the type of a file, by its name or its first bytes.
func mediaTypeOf(path string, content []byte) string {
	for _, full := range []string{mime.TypeByExtension(filepath.Ext(path)), http.DetectContentType(content)} {
		if mediaType, _, err := mime.ParseMediaType(full); err == nil {
			return mediaType
		}
	}
	return "application/octet-stream"
}

// upload stores a file by the gateway, which acts with the token of the caller.
func upload(ctx context.Context, s *session, chat string, content []byte) (stored *v1beta1.StoredFile, err error) {
	caller := *s
	dialer := *s.dialer
	dialer.AsCaller = true
	caller.dialer = &dialer
	err = onGateway(ctx, &caller, func(n client.Namespace) (err error) {
		stored, err = client.UploadFile(ctx, n, chat, content)
		return err
	})
	return stored, err
}
