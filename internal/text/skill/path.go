// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package skill

import (
	"fmt"
	"strings"
	"unicode"
)

// maxPath is how many bytes a path may have.
const maxPath = 1024

// CheckPath is the path of a file in a skill, without a ./ before it. The error says why there is no such file: a path
// is relative, leads nowhere out of the skill, and names nothing hidden.
func CheckPath(file string) (string, error) {
	relative := strings.TrimPrefix(file, "./")
	if relative == "" || len(relative) > maxPath {
		return "", fmt.Errorf("the path is empty, or longer than %d bytes: name a file of the skill", maxPath)
	}
	for segment := range strings.SplitSeq(relative, "/") {
		if segment == "" || segment[0] == '.' || strings.ContainsFunc(segment, strange) {
			return "", fmt.Errorf("the path %.200q is none of a file of the skill: it must be relative, such as "+
				"scripts/fill.py, without .. and without names that begin with a dot", file)
		}
	}
	return relative, nil
}

// strange reports what no name of a file should have: what separates folders elsewhere, and control characters.
func strange(r rune) bool { return r == '\\' || unicode.IsControl(r) || r == unicode.ReplacementChar }
