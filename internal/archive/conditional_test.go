// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"io"
	"testing"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"

	"parley.dev/parley/test/kit/check"
)

func TestWriteKeepsConcurrentChange(t *testing.T) {
	folder, err := fileblob.OpenBucket(t.TempDir(), &fileblob.Options{NoTempDir: true})
	check.OK(t, err)
	for name, b := range map[string]*blob.Bucket{"memory": memblob.OpenBucket(nil), "folder": folder} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { check.OK(t, b.Close()) })
			s, ctx := New(b, time.Now), t.Context()
			replace := func(during func() error) error {
				check.OK(t, b.WriteAll(ctx, "key", []byte("before"), nil))
				at, err := b.Attributes(ctx, "key")
				check.OK(t, err)
				return s.write(ctx, "key", at.ETag, &blob.WriterOptions{ContentType: "text/plain"}, func(to io.Writer) error {
					_, err := to.Write([]byte("after"))
					return errors.Join(err, during())
				})
			}
			err := replace(func() error { return b.WriteAll(ctx, "key", []byte("of another"), nil) })
			check.Equal(t, "a change is a conflict", true, errors.Is(err, ErrConflict))
			kept, err := b.ReadAll(ctx, "key")
			check.OK(t, err)
			check.Equal(t, "what is kept", "of another", string(kept))
			err = replace(func() error { return b.Delete(ctx, "key") })
			check.Equal(t, "a deleted object is not found", true, errors.Is(err, ErrNotFound))
			exists, err := b.Exists(ctx, "key")
			check.OK(t, err)
			check.Equal(t, "a deleted object exists", false, exists)
			check.OK(t, replace(func() error { return nil }))
		})
	}
}
