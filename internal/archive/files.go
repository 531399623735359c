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

// archivedFilesPrefix is that of the files of archived chats: archived-files/NAMESPACE/CHAT/UID/SHA256, where CHAT and
// UID are those of the chat at the top of the family.
const archivedFilesPrefix = "archived-files"

// ErrNotAsNamed means that the content of a file does not have the size or the digest that it was announced with.
var ErrNotAsNamed = errors.New("the content does not have the announced size and SHA-256")

// Files are those in a bucket: of chats in the cluster, and of archives. They are safe for concurrent use.
type Files struct{ bucket *blob.Bucket }

// Files are those of the bucket.
func (s *Store) Files() *Files { return &Files{s.bucket} }

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

// Write stores the content of a file. It stores nothing if the content is not what stored names.
func (s *Files) Write(ctx context.Context, namespace, uid string, stored v1beta1.StoredFile, from io.Reader) error {
	return s.writeFile(ctx, fileKey(namespace, uid, stored.SHA256), stored, from)
}

func (s *Files) writeFile(ctx context.Context, key string, stored v1beta1.StoredFile, from io.Reader) error {
	ctx, abort := context.WithCancel(ctx)
	defer abort()
	to, err := s.bucket.NewWriter(ctx, key, &blob.WriterOptions{ContentType: "application/octet-stream",
		MaxConcurrency: 1}) // Each part that is sent at the same time takes memory of the gateway.
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

// Copy gives a chat the file of another one. The error is ErrNotFound if that has no such file.
func (s *Files) Copy(ctx context.Context, namespace, from, to, digest string) error {
	err := s.bucket.Copy(ctx, fileKey(namespace, to, digest), fileKey(namespace, from, digest), nil)
	if err = known(err); err != nil {
		return fmt.Errorf("copying file %s: %w", digest, err)
	}
	return nil
}

// Open opens the content of a file, of which the caller has to check the digest.
func (s *Files) Open(ctx context.Context, namespace, uid, digest string) (*blob.Reader, error) {
	return s.open(ctx, fileKey(namespace, uid, digest))
}

// OpenArchived does so with a file of an archive.
func (s *Files) OpenArchived(ctx context.Context, namespace, chat, uid, digest string) (*blob.Reader, error) {
	return s.open(ctx, path.Join(archivedFilesPrefix, namespace, chat, uid, digest))
}

func (s *Files) open(ctx context.Context, key string) (*blob.Reader, error) {
	from, err := s.bucket.NewReader(ctx, key, nil)
	if err != nil {
		return nil, known(err)
	}
	return from, nil
}

// List lists the files of a chat; with an empty uid those of all chats of the namespace.
func (s *Files) List(ctx context.Context, namespace, uid string) iter.Seq2[File, error] {
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

// Namespaces lists the namespaces whose chats have files.
func (s *Files) Namespaces(ctx context.Context) (names []string, err error) {
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

// Delete deletes a file, unless it was uploaded after a time; zero: always.
func (s *Files) Delete(ctx context.Context, namespace, uid, digest string, unlessAfter time.Time) error {
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

// DeleteAll deletes all files of a chat that is gone.
func (s *Files) DeleteAll(ctx context.Context, namespace, uid string) error {
	for f, err := range s.List(ctx, namespace, uid) {
		if err == nil {
			err = s.Delete(ctx, namespace, uid, f.SHA256, time.Time{})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// with are the objects of a family. Then the files of its chats are copied into the archive: those of a message were
// uploaded before it.
func (s *Files) with(ctx context.Context, e *Entry, objects iter.Seq2[Object, error]) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		var chats []string
		for o, err := range objects {
			if chat, ok := o.(*v1beta1.Chat); ok && err == nil {
				chats = append(chats, string(chat.UID))
			}
			if !yield(o, err) || err != nil {
				return
			}
		}
		for _, uid := range chats {
			if err := s.archiveAll(ctx, e, uid); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// archiveAll copies the files of a chat into an archive.
func (s *Files) archiveAll(ctx context.Context, e *Entry, uid string) error {
	for f, err := range s.List(ctx, e.Namespace, uid) {
		if err == nil {
			err = s.archive(ctx, e, &f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// archive copies a file, and reads the copy back. The store's own copy operation has limits that differ by server.
func (s *Files) archive(ctx context.Context, e *Entry, f *File) error {
	from, err := s.Open(ctx, e.Namespace, f.UID, f.SHA256)
	if err != nil {
		return fmt.Errorf("reading file %s: %w", f.SHA256, err)
	}
	defer func() { _ = from.Close() }()
	to := path.Join(archivedFilesPrefix, e.Namespace, e.Chat, e.UID, f.SHA256)
	if err := s.writeFile(ctx, to, v1beta1.StoredFile{SHA256: f.SHA256, Size: f.Size}, from); err != nil {
		return err
	}
	sum := sha256.New()
	if err := s.bucket.Download(ctx, to, sum, nil); err != nil {
		return fmt.Errorf("reading %s back: %w", to, err)
	}
	if hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
		return fmt.Errorf("reading %s back: %w", to, errDiffers)
	}
	return nil
}

// deleteArchived deletes the files of an archive.
func (s *Files) deleteArchived(ctx context.Context, namespace, chat, uid string) error {
	all := s.bucket.List(&blob.ListOptions{Prefix: path.Join(archivedFilesPrefix, namespace, chat, uid) + "/"})
	for {
		o, err := all.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = s.bucket.Delete(ctx, o.Key)
		}
		if err != nil && !errors.Is(known(err), ErrNotFound) {
			return fmt.Errorf("deleting the files of the archive of chat %s: %w", chat, err)
		}
	}
}
