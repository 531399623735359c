// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package s3 is an S3 server that verifies signatures (SigV4) and checksums, and keeps objects in a folder.
package s3

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

// The key that the server accepts, and its bucket.
const (
	AccessKey = "parley"
	Secret    = "right-secret"
	Bucket    = "archives"
)

// Serve serves one bucket in a folder until ctx is done.
func Serve(ctx context.Context, dir, address string) error {
	data, sidecar := filepath.Join(dir, "data"), filepath.Join(dir, "sidecar")
	for _, path := range []string{filepath.Join(data, Bucket), sidecar} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return fmt.Errorf("creating the folders of the bucket: %w", err)
		}
	}
	attributes, err := meta.NewSideCar(sidecar)
	if err != nil {
		return fmt.Errorf("opening the attributes of objects: %w", err)
	}
	backend, err := posix.New(data, attributes, posix.PosixOpts{SideCarDir: sidecar, Concurrency: 64})
	if err != nil {
		return fmt.Errorf("opening the bucket: %w", err)
	}
	if err := embedgw.RunVersityGW(ctx, backend, &embedgw.Config{RootUserAccess: AccessKey, RootUserSecret: Secret,
		Ports: []string{address}, MaxConnections: 256, MaxRequests: 256, MultipartMaxParts: 10000, Quiet: true,
		KeepAlive: true}); err != nil {
		return fmt.Errorf("serving the bucket: %w", err)
	}
	return nil
}
