# cmake -DOUTPUT=FOLDER -P embed.cmake: the sources beside this file as one document. FOLDER gets page.c (page.h says what it
# has), and page.html and policy.txt, which tests serve.
set(here ${CMAKE_CURRENT_LIST_DIR})
include(${here}/sources.cmake)

function(join_files result)
    set(text "")
    foreach(file ${ARGN})
        file(READ ${here}/${file} one)
        string(APPEND text "${one}")
    endforeach()
    set(${result} "${text}" PARENT_SCOPE)
endfunction()

# Digits of a base-64 number, `count` of them, the first of `bits`.
function(base64_digits result bits count)
    set(digits ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
    set(text "")
    foreach(k RANGE 1 ${count})
        math(EXPR digit "(${bits} >> (24 - 6 * ${k})) & 63")
        string(SUBSTRING ${digits} ${digit} 1 digit)
        string(APPEND text ${digit})
    endforeach()
    set(${result} "${text}" PARENT_SCOPE)
endfunction()

# The hash as a Content-Security-Policy says it: 32 bytes are ten threes and a two.
function(policy_hash result text)
    string(SHA256 hex "${text}")
    set(hash "")
    foreach(start RANGE 0 54 6)
        string(SUBSTRING ${hex} ${start} 6 three)
        base64_digits(four "0x${three}" 4)
        string(APPEND hash ${four})
    endforeach()
    string(SUBSTRING ${hex} 60 4 two)
    base64_digits(three "0x${two}00" 3)
    set(${result} "sha256-${hash}${three}=" PARENT_SCOPE)
endfunction()

join_files(style ${PAGE_STYLES})
join_files(script ${PAGE_SCRIPTS})
if("${script}" MATCHES "</script|<!--" OR "${style}" MATCHES "</style|<!--")
    message(FATAL_ERROR "a source of the page would end its own element")
endif()
policy_hash(style_hash "${style}")
policy_hash(script_hash "${script}")
set(policy "default-src 'none'; style-src '${style_hash}'; script-src '${script_hash}'; connect-src 'self'; img-src data:; \
base-uri 'none'; form-action 'self'; frame-ancestors 'none'")

file(READ ${here}/page.html page)
string(REPLACE "@STYLE@" "${style}" page "${page}")
string(REPLACE "@SCRIPT@" "${script}" page "${page}")
file(WRITE ${OUTPUT}/page.html "${page}")
file(WRITE ${OUTPUT}/policy.txt "${policy}")
file(READ ${OUTPUT}/page.html bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUTPUT}/page.c "#include \"client/gateway/page/page.h\"

static const unsigned char html[] = {${bytes}};

struct slice page_html(void) { return slice_of(html, sizeof(html)); }

const char *page_policy(void) { return \"${policy}\"; }
")
