# cmake -DSOURCE=DIR -DVERSION=V -DOUT=FILE -P commit.cmake: writes the header that says which program this is; only
# where that has changed.
execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD OUTPUT_VARIABLE commit ERROR_QUIET
                OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
if(failed OR NOT commit)
    set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "#define SLUICE_VERSION \"${VERSION}\"\n#define SLUICE_COMMIT \"${commit}\"\n")
