# cmake -DOUTPUT=FILE -DASK="PROGRAM;COMMAND" -P page.cmake: what it says of itself for man.
execute_process(COMMAND ${ASK} --help-man OUTPUT_FILE ${OUTPUT} COMMAND_ERROR_IS_FATAL ANY)
