// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/smithy-go"
	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // azblob://
	_ "gocloud.dev/blob/fileblob"  // file://
	_ "gocloud.dev/blob/s3blob"    // s3://

	"parley.dev/parley/internal/text/clip"
)

// schemes are those of the URLs of buckets. Google Cloud Storage has the API of S3, too: its own client would add 11 MB
// to each program.
var schemes = []string{"s3", "azblob", "file"}

// Open opens the store at a URL such as s3://bucket?region=eu-central-1. Credentials come from the environment or from
// the identity of the workload, as the provider's SDK finds them. The bucket is not contacted. An empty URL is no
// store. now returns the current time.
func Open(ctx context.Context, address string, now func() time.Time) (*Store, error) {
	if address == "" {
		return nil, nil //nolint:nilnil // Archives are optional.
	}
	u, err := url.Parse(address)
	if err != nil || !slices.Contains(schemes, u.Scheme) {
		return nil, fmt.Errorf("the URL of the archive must begin with %s://", strings.Join(schemes, ":// or "))
	}
	bucket, err := blob.OpenBucket(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("opening the archive: %w", err)
	}
	return New(bucket, now), nil
}

// maxReason is how many characters of an error Reason returns.
const maxReason = 512

// Reason is what an error says to people: of an S3 server its own words, without the ids of the request, which differ
// each time.
func Reason(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok && api.ErrorCode() != "" {
		return clip.Runes(strings.TrimSuffix(api.ErrorCode()+": "+api.ErrorMessage(), ": "), maxReason)
	}
	return clip.Runes(err.Error(), maxReason)
}
