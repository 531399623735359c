// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archive keeps chats that were deleted as objects in a bucket, by the API of S3, in Azure Blob Storage, or in
// a folder.
//
// Each family of chats is one object, chats/NAMESPACE/CHAT/UID.json.gz: a list as kubectl prints it, compressed. The
// key follows from the chat at the top, so that a repeated write replaces the same object. Its entry in the index is
// index/NAMESPACE/DAY/CHAT/UID.json, where DAY is that of the chat's creation. It has the checksum, and all that a list
// shows. An object without an entry is one whose write did not finish. The files of the family are
// archived-files/NAMESPACE/CHAT/UID/SHA256.
package archive

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/v1beta1"
)

const (
	objectsPrefix = "chats"
	indexPrefix   = "index"
	// metaCreated is the metadata of an object that leads to its entry. metaSum is the SHA-256 of a redacted one, whose
	// entry may still have that of the object before.
	metaCreated = "created"
	metaSum     = "sha256"
	// MaxPage is how many entries a page has at most.
	MaxPage = 500
	// readsAtOnce is how many entries are read at the same time.
	readsAtOnce = 16
)

// ErrPage means that the token of a page is not one that List returned.
var ErrPage = errors.New("the token of the page cannot be read: list again from the beginning")

// ErrNotFound means that the store has no such archive.
var ErrNotFound = errors.New("there is no such archive")

// ErrConflict means that something else changed an archive at the same time.
var ErrConflict = errors.New("the archive was changed by another request at the same time: repeat the request")

// errDiffers means that an object is not as it was written.
var errDiffers = errors.New("the object differs from what was written")

// Entry describes an archive.
type Entry struct {
	// Namespace, Chat and UID are those of the chat at the top of the family.
	Namespace string `json:"namespace"`
	Chat      string `json:"chat"`
	UID       string `json:"uid"`
	// Title of the chat, and the name of its ChatClass.
	Title     string `json:"title,omitempty"`
	ChatClass string `json:"chatClass,omitempty"`
	// CreatedAt is when the chat was created, and ArchivedAt when its archive was written.
	CreatedAt  time.Time `json:"createdAt"`
	ArchivedAt time.Time `json:"archivedAt"`
	// Head is the newest message of the chat's history.
	Head string `json:"head,omitempty"`
	// Objects is how many objects of each kind the archive has.
	Objects map[string]int `json:"objects"`
	// Size and SHA256 are those of the compressed object.
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	// Problem is why the entry cannot be read; empty: it can. Then it has Namespace, Chat and UID only.
	Problem string `json:"problem,omitempty"`
}

func (e *Entry) object() string { return objectKey(e.Namespace, e.Chat, e.UID) }

func objectKey(namespace, chat, uid string) string {
	return path.Join(objectsPrefix, namespace, chat, uid+".json.gz")
}

func indexKey(namespace, day, chat, uid string) string {
	return path.Join(indexPrefix, namespace, day, chat, uid+".json")
}

// Object is what an archive has.
type Object interface {
	metav1.Object
	runtime.Object
}

// Store is a bucket with archives and files. It is safe for concurrent use.
type Store struct {
	bucket *blob.Bucket
	now    func() time.Time
	// replacing is held from the comparison of an ETag to the end of the write, and by Delete: folders have no
	// conditional writes.
	replacing sync.Mutex
}

// New returns the store in a bucket. now returns the current time.
func New(bucket *blob.Bucket, now func() time.Time) *Store { return &Store{bucket: bucket, now: now} }

// Write archives a chat with the objects of its family, and reads back what it has written.
func (s *Store) Write(ctx context.Context, chat *v1beta1.Chat, objects iter.Seq2[Object, error]) (*Entry, error) {
	e := &Entry{Namespace: chat.Namespace, Chat: chat.Name, UID: string(chat.UID), Title: chat.Status.Title,
		CreatedAt: chat.CreationTimestamp.UTC(), ArchivedAt: s.now().UTC().Truncate(time.Second),
		Head: chat.Status.History.Head}
	if class := chat.Status.ChatClass; class != nil {
		e.ChatClass = class.Name
	}
	return e, s.put(ctx, e, versions{}, s.Files().with(ctx, e, objects))
}

// put writes an object, reads it back, and does the same with its entry. It replaces only these versions; empty: any.
func (s *Store) put(ctx context.Context, e *Entry, before versions, objects iter.Seq2[Object, error]) error {
	day := e.CreatedAt.Format(time.DateOnly)
	if err := s.writeObjects(ctx, e, day, before.object, objects); err != nil {
		return fmt.Errorf("writing %s: %w", e.object(), err)
	}
	switch sum, err := s.readSum(ctx, e, io.Discard); {
	case err != nil:
		return fmt.Errorf("reading %s back: %w", e.object(), err)
	case sum != e.SHA256: // It is that of another redaction.
		return fmt.Errorf("reading %s back: %w", e.object(), ErrConflict)
	}
	key := indexKey(e.Namespace, day, e.Chat, e.UID)
	raw, err := json.Marshal(e)
	if err == nil {
		err = s.write(ctx, key, before.entry, &blob.WriterOptions{ContentType: "application/json"},
			func(to io.Writer) error { _, err := to.Write(raw); return err })
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", key, err)
	}
	switch back, err := s.bucket.ReadAll(ctx, key); {
	case err != nil:
		return fmt.Errorf("reading %s back: %w", key, known(err))
	case !bytes.Equal(back, raw):
		return fmt.Errorf("reading %s back: %w", key, errDiffers)
	}
	return nil
}

// writeObjects writes the list, and notes in the entry what it is like. If the entry has a checksum before, it writes
// only a list of that checksum.
func (s *Store) writeObjects(ctx context.Context, e *Entry, day, etag string, objects iter.Seq2[Object, error]) error {
	want, metadata := e.SHA256, map[string]string{metaCreated: day}
	if want != "" {
		metadata[metaSum] = want
	}
	return s.write(ctx, e.object(), etag, &blob.WriterOptions{ContentType: "application/gzip", Metadata: metadata,
		MaxConcurrency: 1}, // Each part that is sent at the same time takes memory of the gateway.
		func(to io.Writer) error {
			err := e.compress(to, objects)
			if err == nil && want != "" && want != e.SHA256 {
				err = ErrConflict
			}
			return err
		})
}

// compress writes the list, compressed, and notes in the entry what it is like.
func (e *Entry) compress(to io.Writer, objects iter.Seq2[Object, error]) error {
	e.Objects = map[string]int{}
	sum, size := sha256.New(), &counter{}
	compressed := gzip.NewWriter(io.MultiWriter(to, sum, size))
	err := errors.Join(writeList(compressed, objects, e.Objects), compressed.Close())
	e.Size, e.SHA256 = size.n, hex.EncodeToString(sum.Sum(nil))
	return err
}

// writeList writes objects as kubectl prints them with -o json, one a line.
func writeList(to io.Writer, objects iter.Seq2[Object, error], counts map[string]int) error {
	encoder, between := json.NewEncoder(to), `{"apiVersion":"v1","kind":"List","metadata":{"resourceVersion":""},"items":[`
	encoder.SetEscapeHTML(false)
	for o, err := range objects {
		if err != nil {
			return err
		}
		o.SetManagedFields(nil)
		if _, err := io.WriteString(to, between+"\n"); err != nil {
			return err
		}
		if err := encoder.Encode(o); err != nil {
			return fmt.Errorf("encoding %T %s: %w", o, o.GetName(), err)
		}
		between = ","
		counts[o.GetObjectKind().GroupVersionKind().Kind]++
	}
	_, err := io.WriteString(to, "]}\n")
	return err
}

// counter counts bytes.
type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

// Read writes the list of an archive in JSON. It fails at the end if the object is not as it was written.
func (s *Store) Read(ctx context.Context, e *Entry, to io.Writer) error {
	_, err := s.readSum(ctx, e, to)
	return err
}

// readSum is Read, and returns the checksum.
func (s *Store) readSum(ctx context.Context, e *Entry, to io.Writer) (string, error) {
	sum, err := s.read(ctx, e.object(), to)
	if err != nil || sum == e.SHA256 {
		return sum, err
	}
	attributes, err := s.bucket.Attributes(ctx, e.object())
	if err != nil {
		return "", known(err)
	}
	if attributes.Metadata[metaSum] != sum {
		return "", errDiffers
	}
	return sum, nil
}

// read writes the list in an object in JSON, and returns the checksum of the object.
func (s *Store) read(ctx context.Context, key string, to io.Writer) (string, error) {
	from, err := s.bucket.NewReader(ctx, key, nil)
	if err != nil {
		return "", known(err)
	}
	defer func() { _ = from.Close() }()
	sum := sha256.New()
	hashed := io.TeeReader(from, sum)
	list, err := gzip.NewReader(hashed)
	if err == nil {
		_, err = io.Copy(to, list)
	}
	if err == nil {
		_, err = io.Copy(io.Discard, hashed)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", errDiffers, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// List are the archives of a namespace whose chats were created on the day, or in the month or year (2026-11-26,
// 2026-11, 2026; empty: any), and how to get the next ones.
func (s *Store) List(ctx context.Context, namespace, created string, limit int, next string) ([]Entry, string, error) {
	token := blob.FirstPageToken
	if next != "" {
		var err error
		if token, err = base64.RawURLEncoding.DecodeString(next); err != nil {
			return nil, "", ErrPage
		}
	}
	page, token, err := s.bucket.ListPage(ctx, token, limit, &blob.ListOptions{
		Prefix: indexPrefix + "/" + namespace + "/" + created})
	if err != nil {
		return nil, "", fmt.Errorf("listing the archives of namespace %s: %w", namespace, err)
	}
	entries, err := s.entries(ctx, page, func(o *blob.ListObject) (string, error) { return o.Key, nil })
	return entries, base64.RawURLEncoding.EncodeToString(token), err
}

// Of are the archives of the chats of a name, of which there is one for each UID.
func (s *Store) Of(ctx context.Context, namespace, chat string) ([]Entry, error) {
	page, _, err := s.bucket.ListPage(ctx, blob.FirstPageToken, MaxPage, &blob.ListOptions{
		Prefix: path.Join(objectsPrefix, namespace, chat) + "/"})
	if err != nil {
		return nil, fmt.Errorf("listing the archives of chat %s: %w", chat, err)
	}
	return s.entries(ctx, page, func(o *blob.ListObject) (string, error) {
		uid, _ := strings.CutSuffix(path.Base(o.Key), ".json.gz")
		return s.index(ctx, namespace, chat, uid)
	})
}

// entries reads the entries with these keys. One that was deleted meanwhile is omitted.
func (s *Store) entries(ctx context.Context, page []*blob.ListObject, key func(*blob.ListObject) (string, error),
) ([]Entry, error) {
	all := make([]Entry, len(page))
	var reads errgroup.Group
	reads.SetLimit(readsAtOnce)
	for i, o := range page {
		reads.Go(func() error {
			at, err := key(o)
			if err == nil {
				err = s.readEntry(ctx, at, &all[i])
			}
			if errors.Is(err, ErrNotFound) {
				return nil
			}
			return err
		})
	}
	err := reads.Wait()
	return slices.DeleteFunc(all, func(e Entry) bool { return e.UID == "" }), err
}

// readEntry reads an entry. One that is damaged does not keep the others from being listed.
func (s *Store) readEntry(ctx context.Context, key string, into *Entry) error {
	raw, err := s.bucket.ReadAll(ctx, key)
	if err != nil {
		return fmt.Errorf("reading %s: %w", key, known(err))
	}
	if err := json.Unmarshal(raw, into); err != nil || into.UID == "" {
		chat, uid := path.Split(strings.TrimSuffix(key, ".json"))
		*into = Entry{Namespace: strings.Split(key, "/")[1], Chat: path.Base(chat), UID: uid,
			Problem: "its entry in the index is damaged"}
	}
	return nil
}

// index is the key of the entry of an archive.
func (s *Store) index(ctx context.Context, namespace, chat, uid string) (string, error) {
	attributes, err := s.bucket.Attributes(ctx, objectKey(namespace, chat, uid))
	if err != nil {
		return "", known(err)
	}
	return indexKey(namespace, attributes.Metadata[metaCreated], chat, uid), nil
}

// Get is the archive of a chat.
func (s *Store) Get(ctx context.Context, namespace, chat, uid string) (*Entry, error) {
	key, err := s.index(ctx, namespace, chat, uid)
	if err != nil {
		return nil, err
	}
	e := &Entry{}
	if err := s.readEntry(ctx, key, e); err != nil {
		return nil, err
	}
	if e.Problem != "" {
		return nil, fmt.Errorf("reading %s: %s", key, e.Problem)
	}
	return e, nil
}

// Delete removes the archive of a chat. The object comes last: as long as it is there, Delete can be repeated.
func (s *Store) Delete(ctx context.Context, namespace, chat, uid string) error {
	if err := s.Files().deleteArchived(ctx, namespace, chat, uid); err != nil {
		return err
	}
	key, err := s.index(ctx, namespace, chat, uid)
	if err != nil {
		return err
	}
	s.replacing.Lock()
	defer s.replacing.Unlock()
	if err := known(s.bucket.Delete(ctx, key)); err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("deleting %s: %w", key, err)
	}
	object := objectKey(namespace, chat, uid)
	if err := known(s.bucket.Delete(ctx, object)); err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("deleting %s: %w", object, err)
	}
	return nil
}

// known is ErrNotFound for what the store does not have, and any other error itself.
func known(err error) error {
	if gcerrors.Code(err) == gcerrors.NotFound {
		return ErrNotFound
	}
	return err
}
