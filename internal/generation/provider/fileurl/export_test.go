// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fileurl

import "context"

// WithURL is the context of a call that hands over a file.
func WithURL(ctx context.Context, standIn, url string) context.Context {
	return withURLs(ctx, standIns{standIn: url})
}
