// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"strings"
	"time"

	"gocloud.dev/blob"

	"parley.dev/parley/api/v1beta1"
)

// filesPrefix is that of the files of chats: files/NAMESPACE/UID/SHA256, where UID is that of the chat. So a message
// reaches the files of its own chat only.
const filesPrefix = "files"

// ErrNotAsNamed means that the content of a file does not have the size or the digest that it was announced with.
var ErrNotAsNamed = errors.New("the content does not have the announced size and SHA-256")

// File is the file of a chat in the store.
type File struct {
	// UID is that of the chat.
	UID, SHA256 string
	Size        int64
	// Modified is when it was last uploaded.
	Modified time.Time
}

func fileKey(namespace, uid, digest string) string {
	return path.Join(filesPrefix, namespace, uid, digest)
}

// WriteFile stores the content of a file. It stores nothing if the content is not what stored names.
func (s *Store) WriteFile(ctx context.Context, namespace, uid string, stored v1beta1.StoredFile, from io.Reader) error {
	key := fileKey(namespace, uid, stored.SHA256)
	ctx, abort := context.WithCancel(ctx)
	defer abort()
	to, err := s.bucket.NewWriter(ctx, key, &blob.WriterOptions{ContentType: "application/octet-stream"})
	if err != nil {
		return fmt.Errorf("writing %s: %w", key, err)
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(from, stored.Size+1))
	if err == nil && (n != stored.Size || hex.EncodeToString(sum.Sum(nil)) != stored.SHA256) {
		err = ErrNotAsNamed
	}
	if err != nil {
		abort() // The store keeps nothing of an object that is not complete.
		_ = to.Close()
		return fmt.Errorf("writing %s: %w", key, err)
	}
	if err := to.Close(); err != nil {
		return fmt.Errorf("writing %s: %w", key, err)
	}
	return nil
}

// OpenFile opens the content of a file, of which the caller has to check the digest.
func (s *Store) OpenFile(ctx context.Context, namespace, uid, digest string) (*blob.Reader, error) {
	from, err := s.bucket.NewReader(ctx, fileKey(namespace, uid, digest), nil)
	if err != nil {
		return nil, known(err)
	}
	return from, nil
}

// Files lists the files of a chat; with an empty uid those of all chats of the namespace.
func (s *Store) Files(ctx context.Context, namespace, uid string) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		all := s.bucket.List(&blob.ListOptions{Prefix: path.Join(filesPrefix, namespace, uid) + "/"})
		for {
			o, err := all.Next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(File{}, fmt.Errorf("listing the files of namespace %s: %w", namespace, err))
				return
			}
			dir, digest := path.Split(o.Key)
			if !yield(File{UID: path.Base(dir), SHA256: digest, Size: o.Size, Modified: o.ModTime}, nil) {
				return
			}
		}
	}
}

// NamespacesWithFiles lists the namespaces whose chats have files.
func (s *Store) NamespacesWithFiles(ctx context.Context) (names []string, err error) {
	all := s.bucket.List(&blob.ListOptions{Prefix: filesPrefix + "/", Delimiter: "/"})
	for {
		o, err := all.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return names, nil
		case err != nil:
			return nil, fmt.Errorf("listing the namespaces with files: %w", err)
		case o.IsDir:
			names = append(names, path.Base(strings.TrimSuffix(o.Key, "/")))
		}
	}
}

// DeleteFile deletes a file, unless it was uploaded after a time; zero: always.
func (s *Store) DeleteFile(ctx context.Context, namespace, uid, digest string, unlessAfter time.Time) error {
	key := fileKey(namespace, uid, digest)
	if !unlessAfter.IsZero() {
		now, err := s.bucket.Attributes(ctx, key)
		if err == nil && now.ModTime.After(unlessAfter) {
			return nil
		}
		if err != nil && !errors.Is(known(err), ErrNotFound) {
			return fmt.Errorf("reading %s: %w", key, err)
		}
	}
	if err := known(s.bucket.Delete(ctx, key)); err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("deleting %s: %w", key, err)
	}
	return nil
}

// DeleteFiles deletes all files of a chat that is gone.
func (s *Store) DeleteFiles(ctx context.Context, namespace, uid string) error {
	for f, err := range s.Files(ctx, namespace, uid) {
		if err == nil {
			err = s.DeleteFile(ctx, namespace, uid, f.SHA256, time.Time{})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
