// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"cmp"
	"math"
	"net/http"
	"regexp"
	"strconv"
)

// Words for more images in a request than are taken, in small letters: with their limit, without it, and for models
// that take none. They are those of Anthropic, Azure, Groq, vLLM, Meta, DeepSeek, OpenAI, OpenRouter and llama.cpp.
var (
	imageLimits = regexp.MustCompile(
		`\btoo (?:many images|much media)\b.{0,120}?` +
			`(?:>|\bmax(?:imum)?(?: allowed)?(?: is| of)?|\bup to|\bat most) ?(\d{1,4})\b|` +
			`\bat most (\d{1,4}) images?\b|\bimages, exceeding the maximum of (\d{1,4})\b|\bset image=(\d{1,4})\b`)
	tooManyImages = regexp.MustCompile(`\btoo (?:many images|much media)\b`)
	noImages      = regexp.MustCompile("\\bunknown variant .image_url.|\\bis not a multimodal model\\b|" +
		`\bnot support (?:image|vision) inputs?\b|\bthat support image input\b|\bimage input is not supported\b|` +
		`\bimage_url is only supported by certain models\b`)
)

// ImagesRefused reports whether an error is about the number of images in the request, and how many the provider takes;
// math.MaxInt: unknown.
func ImagesRefused(err error, about Subject) (limit int, refused bool) {
	f := find(err, about)
	if !f.has(0, http.StatusBadRequest, http.StatusNotFound, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity, http.StatusInternalServerError) {
		return 0, false
	}
	said := f.text + "\n" + f.cause
	if m := imageLimits.FindStringSubmatch(said); m != nil {
		limit, err = strconv.Atoi(cmp.Or(m[1:]...))
		return limit, err == nil
	}
	if tooManyImages.MatchString(said) {
		return math.MaxInt, true
	}
	return 0, noImages.MatchString(said)
}
