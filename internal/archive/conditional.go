// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	azblobblob "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/smithy-go"
	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// versions are the ETags of an archive's object and of its entry.
type versions struct{ object, entry string }

// versions reads the ETags. What is read afterwards is at least as new.
func (s *Store) versions(ctx context.Context, namespace, chat, uid string) (versions, error) {
	object, err := s.bucket.Attributes(ctx, objectKey(namespace, chat, uid))
	if err != nil {
		return versions{}, known(err)
	}
	entry, err := s.bucket.Attributes(ctx, indexKey(namespace, object.Metadata[metaCreated], chat, uid))
	if err != nil {
		return versions{}, known(err)
	}
	return versions{object.ETag, entry.ETag}, nil
}

// write writes an object. If an ETag is given, it replaces only the object with that ETag: it fails with ErrConflict if
// the object was changed, and with ErrNotFound if it was deleted. If fill fails, the store keeps nothing of it.
func (s *Store) write(ctx context.Context, key, etag string, o *blob.WriterOptions, fill func(io.Writer) error) error {
	ctx, abort := context.WithCancel(ctx)
	defer abort()
	conditional := false
	if etag != "" {
		o.BeforeWrite = ifMatch(etag, &conditional)
	}
	to, err := s.bucket.NewWriter(ctx, key, o)
	if err != nil {
		return err
	}
	if err = fill(to); err == nil && etag != "" {
		if !conditional {
			s.replacing.Lock()
			defer s.replacing.Unlock()
		}
		err = s.isUnchanged(ctx, key, etag)
	}
	if err != nil {
		abort() // The store keeps nothing of an object that is not complete.
		_ = to.Close()
		return conflictOf(err)
	}
	return conflictOf(to.Close())
}

// ifMatch makes a write to S3 or Azure conditional, and notes that it did. Folders have no conditional writes.
func ifMatch(etag string, conditional *bool) func(as func(any) bool) error {
	return func(as func(any) bool) error {
		*conditional = true
		var s3 *transfermanager.UploadObjectInput
		var azure *azblob.UploadStreamOptions
		switch {
		case as(&s3):
			s3.IfMatch = &etag
		case as(&azure):
			azure.AccessConditions = &azblobblob.AccessConditions{ModifiedAccessConditions: &azblobblob.
				ModifiedAccessConditions{IfMatch: new(azcore.ETag(etag))}}
		default:
			*conditional = false
		}
		return nil
	}
}

// isUnchanged fails if an object does not have the ETag. It is for folders, and for servers that ignore conditions.
func (s *Store) isUnchanged(ctx context.Context, key, etag string) error {
	now, err := s.bucket.Attributes(ctx, key)
	if err == nil && now.ETag != etag {
		err = ErrConflict
	}
	return err
}

// conflictOf is ErrConflict or ErrNotFound for a condition that does not hold, and any other error itself.
func conflictOf(err error) error {
	api, ok := errors.AsType[smithy.APIError](err)
	if gcerrors.Code(err) == gcerrors.FailedPrecondition || ok && api.ErrorCode() == "ConditionalRequestConflict" {
		return fmt.Errorf("%w: %w", ErrConflict, err)
	}
	return known(err)
}
